package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/pipeline"
)

func (c *cli) createStreamCommand() *cobra.Command {
	var where node.Where
	var s pipeline.NewStream
	var settings []string
	cmd := &cobra.Command{
		Use:   "create STREAM",
		Short: "Create a stream, with as many partitions, journals and copies as you say",
		Long: `Creates a stream. On a cluster its partitions share one journal, with one leader, unless
--journals shares them out: partition p is in journal p modulo their number. How many
journals there are, and daybook.durability, is settled here for good; partitions can be
added, copies are changed by "daybook cluster replicas", other settings by Kafka's tools.`,
		Example: "  daybook streams create web.access --brokers 10.0.0.1:9092 --partitions 12 --journals 6\n  daybook streams create audit --data ./data --set daybook.durability=durable --set retention.ms=-1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			s.Name = a[0]
			if err := node.CreateStream(cmd.Context(), where, s, settings, log); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.stdout, "stream %s is created\n", s.Name)
			return err
		},
	}
	journalFlags(cmd, &where)
	cmd.Flags().IntVar(&s.Partitions, "partitions", 1, "partitions, 1 to 1024")
	cmd.Flags().IntVar(&s.Journals, "journals", 1, "journals that a Daybook shares them out to, each with a leader of its own")
	cmd.Flags().IntVar(&s.Copies, "copies", 0, "nodes that have each; 0 is what the journal does by itself (a cluster: three)")
	cmd.Flags().StringArrayVar(&settings, "set", nil, "a setting, NAME=VALUE as in Kafka; as often as needed")
	return cmd
}
