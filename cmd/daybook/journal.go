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
	hasVerbs(cmd)
	cmd.AddCommand(
		c.journalListCommand(), c.journalReadCommand(), c.journalRepairCommand(),
		&cobra.Command{
			Use:   "verify DIR",
			Short: "Read every byte and say what is damaged, and where",
			Long: `Reads every frame of every journal below DIR, checks checksums, links and offsets, and
prints each fault with its file and position. It changes nothing, and works on a disk that is
mounted read-only; no process may have the journal open. Exit code 1 if there is a fault.`,
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

func (c *cli) journalListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls DIR",
		Short: "List segments and partitions: positions, offsets, times, sizes, indexes, holds",
		Long: `Lists the journals below DIR: their segments with positions, times, sizes and index files,
and their partitions with offsets and what keeps retention from removing records. It only
reads, and works beside a running server and on a disk that is mounted read-only.`,
		Example: "  daybook journal ls ./data\n  daybook journal ls ./data --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			return node.ListJournals(cmd.Context(), a[0], asJSON, c.stdout)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) journalReadCommand() *cobra.Command {
	var o node.ReadJournalOptions
	cmd := &cobra.Command{
		Use:   "read DIR --stream STREAM",
		Short: "Print a partition's records as lines of JSON, without a server",
		Long: `Prints the records of a partition from an offset on, as they are stored: those of aborted
transactions too. It only reads, and works beside a running server and on a disk that is
mounted read-only. It ends with exit code 1 at the first damage, and says what it cannot read;
with --skip-damage it says so and goes on behind it.`,
		Example: "  daybook journal read ./data --stream shop.changes --partition 0 --from 120 | head",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.Dir, o.Out, o.Log = a[0], c.stdout, log
			return node.ReadJournal(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Stream, "stream", "", "name or id of the stream")
	cmd.Flags().Int32Var(&o.Partition, "partition", 0, "number of the partition")
	cmd.Flags().Int64Var(&o.From, "from", 0, "offset to begin at")
	cmd.Flags().IntVarP(&o.Limit, "limit", "n", 0, "stop after this many records; 0 for no limit")
	cmd.Flags().BoolVar(&o.SkipDamage, "skip-damage", false, "go on behind what cannot be read, and say what that is")
	if err := cmd.MarkFlagRequired("stream"); err != nil {
		panic(err) // the flag was defined above
	}
	return cmd
}

func (c *cli) journalRepairCommand() *cobra.Command {
	var o node.RepairOptions
	cmd := &cobra.Command{
		Use:   "repair DIR",
		Short: "Give up what is damaged, so that the rest opens again",
		Long: `Says what repairs the damaged journals below DIR and what is lost by it; with --yes it does so.
A log is one piece: either its front goes up to behind the damage (--keep newer, the default
where it can be), or the damage and all behind it (--keep older; offsets are then given out
again, and consumers that are ahead are out of range).

Nothing is deleted: what goes is moved into a folder quarantine-N within the journal's. A
replica or a backup is better than any repair.

Exit code 0 if nothing was to be repaired or all was, 1 if --yes is missing or it failed.`,
		Example: "  daybook journal repair ./data\n  daybook journal repair ./data --keep older --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			o.Dir, o.Out = a[0], c.stdout
			return node.RepairJournals(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Keep, "keep", "", "newer or older: which side of the damage stays")
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "do it")
	return cmd
}
