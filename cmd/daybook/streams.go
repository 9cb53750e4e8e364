package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) streamsCommand() *cobra.Command {
	var where node.Where
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:     "streams",
		Short:   "List the streams of a journal with their positions",
		Example: "  daybook streams -f shop.yaml\n  daybook streams --brokers 127.0.0.1:9092 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			streams, err := node.Streams(cmd.Context(), where, all, log)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.stdout).Encode(streams)
			}
			w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "STREAM\tPARTITION\tFIRST\tNEXT\tRECORDS\tID")
			for _, s := range streams {
				for _, p := range s.Partitions {
					fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", s.Name, p.Partition, p.First, p.Next, p.Next-p.First, s.ID)
				}
			}
			return w.Flush()
		},
	}
	journalFlags(cmd, &where)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "with the streams that Daybook keeps for itself")
	cmd.AddCommand(c.createStreamCommand())
	return cmd
}
