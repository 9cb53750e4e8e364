package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) runCommand() *cobra.Command {
	var o node.RunOptions
	cmd := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run the sources and sinks of pipeline files",
		Long: `Runs the sources and sinks of one or more pipeline files until it is stopped.

With --once it moves what was there at the start and exits 0: databases up to their
position at the start, files up to their size, sinks up to what is then in the journal.
On a journal that other workers use too, it leaves to them what they deliver and waits
for it, and takes over from those that die. It exits 1 if others make no progress for ten
minutes, or if a worker without --once runs one of its sources. Several with --once share
the work.

Stopping it (SIGTERM, SIGINT) loses nothing and needs no care, and neither does kill -9:
the next run goes on where the journal and the destinations say.`,
		Example: "  daybook run shop.yaml\n  daybook run shop.yaml --only search,cache --http 127.0.0.1:9600\n  daybook run shop.yaml --once",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.Files, o.Log, o.Version = files, log, version
			return node.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "run only the sources and sinks of these names")
	cmd.Flags().BoolVar(&o.Once, "once", false, "move what is there now, then exit 0")
	cmd.Flags().StringVar(&o.HTTP, "http", "", "serve /metrics, /live, /ready and /status on this address (host:port)")
	return cmd
}
