package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) clusterRecover(v *node.ClusterVerbs) *cobra.Command {
	var o node.RecoverOptions
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Go on with the nodes that are left, after most were lost for good",
		Long: `For when so many nodes are gone for good that nothing can be decided any more: without a majority
of its nodes a cluster only waits, as it cannot know what the others have acknowledged. This makes
it go on with what the surviving nodes have. WHAT ONLY THE OTHERS HAD IS LOST, and the others can
never come back with what they have: should one be started again it is turned away.

Stop the servers of all surviving nodes. Without --accept-loss nothing is changed: it says what the
folder holds, up to where, and what that tells about what is lost (a consumer group that had read
further than a copy goes proves that records are missing).

With one survivor:
  daybook cluster recover --data DIR                        # look
  daybook cluster recover --data DIR --accept-loss          # do it, then start the server

With several, each on its machine:
  daybook cluster recover --data DIR --report node3.json    # on each, and carry the files to all
  daybook cluster recover --data DIR --with node4.json,node5.json --accept-loss

Each journal goes on with the copy that goes furthest; copies that do not go on are moved into a folder
set-aside-N, nothing is deleted. It may be cut off at any moment and is given again then; a server does
not start before it is finished. Nodes of the cluster that are not named as survivors must be off: if
one answers it is refused. Afterwards let new nodes join: journals get as many copies again as they had.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.Log = log
			return v.Recover(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVar(&o.With, "with", nil, "reports of the other surviving nodes")
	cmd.Flags().StringVar(&o.Report, "report", "", "file to write this node's report to, for the others")
	cmd.Flags().BoolVar(&o.AcceptLoss, "accept-loss", false, "do it: what only the lost nodes had is lost")
	return cmd
}
