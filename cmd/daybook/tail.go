package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) tailCommand() *cobra.Command {
	var o node.TailOptions
	cmd := &cobra.Command{
		Use:   "tail STREAM",
		Short: "Print a stream's records, from a position or a time, and go on as they come",
		Long: `Prints the records of a stream as they stand in the journal. Without --from it begins
at the end. --from takes a time in RFC 3339, or a position: an offset for each partition
("120" for all, "shop.changes/0@120,shop.changes/1@88" for some), "start" or "end".`,
		Example: "  daybook tail shop.changes -f shop.yaml --where 'table == \"orders\"'\n  daybook tail web.access --from 2026-09-01T00:00:00Z --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.Stream, o.Out, o.Log = a[0], c.stdout, log
			return node.Tail(cmd.Context(), o)
		},
	}
	journalFlags(cmd, &o.Where)
	cmd.Flags().StringVar(&o.From, "from", "end", "where to begin: TIME, POSITION, start or end")
	cmd.Flags().StringVar(&o.Filter, "where", "", "print only records for which this expression holds")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object a line, with offset, headers and times")
	cmd.Flags().BoolVar(&o.Once, "once", false, "stop at what is the end now")
	cmd.Flags().IntVarP(&o.Limit, "limit", "n", 0, "stop after this many records; 0 for no limit")
	return cmd
}
