package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) journalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Look at a journal on disk, without a server",
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "verify DIR",
			Short: "Read every byte and say what is damaged, and where",
			Long: `Reads every frame of every journal below DIR, checks checksums, links and offsets, and
prints each fault with its file and position. It changes nothing. Exit code 1 if there is one.`,
			Example: "  daybook journal verify ./data",
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, a []string) error {
				faults, err := node.VerifyJournals(cmd.Context(), a[0], c.stdout)
				if err == nil && faults > 0 {
					err = fmt.Errorf("%d faults below %s", faults, a[0])
				}
				return err
			},
		},
		&cobra.Command{
			Use:     "dump DIR",
			Short:   "Print every frame and batch of the journals below DIR",
			Example: "  daybook journal dump ./data | less",
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, a []string) error {
				return node.DumpJournals(cmd.Context(), a[0], c.stdout)
			},
		},
	)
	return cmd
}
