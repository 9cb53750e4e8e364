package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) clusterCommand() *cobra.Command {
	v := &node.ClusterVerbs{Out: c.stdout}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look after a cluster: how it is, where journals lie, nodes that come and go",
		Long: `Asks the server that has the folder --data open, on this machine and as its user; any node of
the cluster will do. Nothing listens on the network for this. docs/cluster.md is the guide.

Exit codes: 0 ok (status: all is in order), 1 refused or failed (status: something is wrong),
2 wrong question (no such stream, journal or node), 3 no server to ask.`,
	}
	hasVerbs(cmd)
	cmd.PersistentFlags().StringVar(&v.Dir, "data", "data", "folder of a node of the cluster")
	cmd.PersistentFlags().BoolVar(&v.JSON, "json", false, "print JSON")
	cmd.AddCommand(clusterStatus(v), clusterAdd(v), clusterRemove(v), clusterMove(v), clusterTransfer(v), clusterReplicas(v), clusterRebalance(v), c.clusterRecover(v))
	return cmd
}

func clusterStatus(v *node.ClusterVerbs) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the nodes, and the journals that are not in order: leaders, copies, lag",
		Long: `Shows what is wrong first: journals without a leader, with too few copies in sync, nodes that
are down. Then the nodes (of one that is down FOR is since it was last heard of), and every
journal that is not in order, with where its copies are and how far they are behind.

A copy is: leader, in sync (has all that the leader has, or nearly so), behind, joining (gets
what it lacks before it counts), leaving, down, failed (takes nothing any more), or unknown.

It answers without a majority of the nodes too, and says that the list of journals may be old.`,
		Example: "  daybook cluster status --data /var/lib/daybook\n  daybook cluster status --json | jq .counts",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.Status(cmd.Context(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "with the journals that are in order")
	return cmd
}

func clusterAdd(v *node.ClusterVerbs) *cobra.Command {
	return &cobra.Command{
		Use:   "add",
		Short: "Say how a node is added: it joins by itself, with daybook server --join",
		Long: `Prints the command with which a new node joins this cluster. It is run on the new machine, with
an empty folder: a node asks to be let in, nobody has to announce it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return v.Add(cmd.Context()) },
	}
}

func clusterMove(v *node.ClusterVerbs) *cobra.Command {
	var to []int32
	cmd := &cobra.Command{
		Use:   "move STREAM/JOURNAL --to NODE,...",
		Short: "Put a journal onto other nodes, the one that should lead it first",
		Long: `Says which nodes are to have the journal. New copies get everything before they count, and old
ones go only when all new ones count; the journal is used meanwhile. The command returns at once:
daybook cluster status shows how far it is, and another move takes the place of this one.

A stream's partitions share its journals: partition p is in journal p modulo their number. Most
streams have one journal, number 0.`,
		Example: "  daybook cluster move shop.changes/0 --to 1,2,4",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return v.Move(cmd.Context(), args[0], to) },
	}
	cmd.Flags().Int32SliceVar(&to, "to", nil, "numbers of the nodes")
	mustHave(cmd, "to")
	return cmd
}

// mustHave makes a flag of a command one that has to be given.
func mustHave(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err) // the flag was defined before
	}
}

func clusterTransfer(v *node.ClusterVerbs) *cobra.Command {
	var to int32
	cmd := &cobra.Command{
		Use:   "transfer STREAM/JOURNAL --to NODE",
		Short: "Have another of its nodes lead a journal, from now on",
		Long: `Makes the node the first of the journal's nodes, which leads it whenever it can, and hands it the
lead at once if it has nearly everything. To empty a node for maintenance no transfer is needed:
a server that is stopped hands over what it leads.`,
		Example: "  daybook cluster transfer shop.changes/0 --to 2",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return v.Transfer(cmd.Context(), args[0], to) },
	}
	cmd.Flags().Int32Var(&to, "to", 0, "number of the node")
	mustHave(cmd, "to")
	return cmd
}

func clusterRemove(v *node.ClusterVerbs) *cobra.Command {
	var r node.Removal
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Empty a node and take it out, also one that is gone for good",
		Long: `Moves what the node has to others, a few journals at a time, and then takes it out. It gets nothing
new from now on. The command shows how far it is; it may be interrupted and given again, and goes on
then. The node that is out says so and ends; to join again it needs an empty folder.

A node that is dead is taken out the same way, as long as every journal of it has a majority of its
copies elsewhere. Where there is no other node for a copy it is refused: start another node first,
or say --fewer to go on with fewer copies.`,
		Example: "  daybook cluster remove 3\n  daybook cluster remove 3 --undo",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 32)
			if err != nil {
				return fmt.Errorf("%w: %q is no number of a node", node.ErrConfig, args[0])
			}
			r.Node = int32(id)
			return v.Remove(cmd.Context(), r)
		},
	}
	cmd.Flags().BoolVar(&r.Fewer, "fewer", false, "leave journals with fewer copies where no other node can have one")
	cmd.Flags().BoolVar(&r.Undo, "undo", false, "keep the node, with what it still has")
	return cmd
}

func clusterRebalance(v *node.ClusterVerbs) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "Spread copies and leads over the nodes, after some were added",
		Long: `Moves as few copies as it takes until every node has as many as the others, and each journal is in as
many racks as can be; and shares out which node should lead what. At most four journals are on their
way at a time, and no journal ever has fewer copies than before. It may be interrupted and given
again, and goes on then. It is refused while a node is down: bring it back, or remove it.`,
		Example: "  daybook cluster rebalance --dry-run\n  daybook cluster rebalance",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.Rebalance(cmd.Context(), dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would move")
	return cmd
}

func clusterReplicas(v *node.ClusterVerbs) *cobra.Command {
	var count int
	var all, dry bool
	cmd := &cobra.Command{
		Use:   "replicas (STREAM | --all) --count N",
		Short: "Give a stream's journals more or fewer copies",
		Long: `Adds copies on the nodes that have least, in other racks where there are some, or takes copies away. A
few journals are on their way at a time; it may be interrupted and given again, and goes on then.`,
		Example: "  daybook cluster replicas shop.changes --count 3\n  daybook cluster replicas --all --count 3",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return fmt.Errorf("%w: name one stream, or say --all", node.ErrConfig)
			}
			stream := ""
			if !all {
				stream = args[0]
			}
			return v.Replicas(cmd.Context(), stream, count, dry)
		},
	}
	cmd.Flags().IntVar(&count, "count", 0, "how many copies each journal is to have")
	cmd.Flags().BoolVar(&all, "all", false, "of every stream")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would move")
	mustHave(cmd, "count")
	return cmd
}
