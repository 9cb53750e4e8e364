package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) statusCommand() *cobra.Command {
	var o node.StatusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show position, lag, watermark, late records and dead letters of each source and sink",
		Long: `Asks the running worker; where none runs, says so and shows what the journal holds:
positions and parked tables of the sources, cursors and how far each sink is behind. With
--brokers beside --file it shows what the journal at those addresses holds of that pipeline.

BEHIND counts offsets that are not delivered yet, not records: on a server or a Kafka each
transaction of a source takes one more than it has records, so that 261 events that were
posted one by one are 522. 0 is exact. LAG is time.`,
		Example: "  daybook status -f shop.yaml\n  daybook status --http 127.0.0.1:9600 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.Out, o.Log = c.stdout, log
			return node.Status(cmd.Context(), o)
		},
	}
	journalFlags(cmd, &o.Where)
	cmd.Flags().StringVar(&o.HTTP, "http", "", "address of the worker's --http, where it is not in the journal's folder")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}
