package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) getCommand() *cobra.Command {
	var o node.GetOptions
	cmd := &cobra.Command{
		Use:   "get STREAM --key KEY",
		Short: "Print the last record of a key, or all of them",
		Long: `Looks a key up in the stream's key index and prints its last record as a line of JSON; with
--history all of its records, the oldest first. Asks the process that has the journal's
folder open, or opens the folder where none has.

The stream must keep an index by key: ` + "`index: [key]`" + ` in the source that fills it, or
daybook.key.index=true among the settings of a server's stream. It may be switched on at
any time and is made of what is there. Exit code 1 if no record has the key.`,
		Example: "  daybook get shop.changes --key '{\"id\":42}'\n  daybook get shop.changes --key '{\"id\":42}' --history --data ./data",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.Stream, o.Out, o.Log = a[0], c.stdout, log
			return node.Get(cmd.Context(), o)
		},
	}
	folderFlags(cmd, &o.Where)
	cmd.Flags().StringVar(&o.Key, "key", "", "the key, exactly as it is stored")
	cmd.Flags().BoolVar(&o.History, "history", false, "print all records of the key, the oldest first")
	if err := cmd.MarkFlagRequired("key"); err != nil {
		panic(err) // the flag was defined above
	}
	return cmd
}
