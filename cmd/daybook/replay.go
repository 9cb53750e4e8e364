package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) replayCommand() *cobra.Command {
	var o node.ReplayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE --sink NAME --from TIME|POSITION [--to TIME|POSITION] --into TARGET",
		Short: "Deliver a stretch of history to a sink again",
		Long: `Reads a stretch of the journal and delivers it through the sink's own settings, with a
cursor of its own: live delivery is not touched. Exit code 0 when all of it is durable
at the target.

--into names a shadow target, so that nothing live is overwritten with the past: another
index (a template such as 'rebuilt-{table}', or a prefix of the live one's name), another
key prefix, another folder. --into live delivers to the sink's own target; that is allowed only
for sinks that keep versions, and only without --to, up to the live cursor, so that
later deletes are applied again.

TIME is RFC 3339; times are event times. POSITION is start, end, an offset for all
partitions (120), or those of some (shop.changes/0@120,shop.changes/1@88).`,
		Example: "  daybook replay shop.yaml --sink search --from 2026-09-01T00:00:00Z --into 'rebuilt-{table}'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.File, o.Out, o.Log = a[0], c.stdout, log
			return node.Replay(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Sink, "sink", "", "name of the sink in FILE")
	cmd.Flags().StringVar(&o.From, "from", "", "first time or position")
	cmd.Flags().StringVar(&o.To, "to", "", "time or position to stop before; the end of now if missing")
	cmd.Flags().StringVar(&o.Into, "into", "", "shadow target, or live")
	cmd.Flags().IntVar(&o.Epoch, "epoch", 0, "replay epoch of a shadow target (0 to 2047)")
	for _, required := range []string{"sink", "from", "into"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // the flag was defined above
		}
	}
	return cmd
}
