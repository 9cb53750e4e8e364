package node

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/daybook-data/daybook/cluster/moves"
	"github.com/daybook-data/daybook/cluster/status"
)

// printClusterStatus prints what one looks at at night: first what is wrong, then the nodes, then journals: those that are
// not in order, or with all set every one.
func printClusterStatus(out io.Writer, s *status.Cluster, all bool, now time.Time) error {
	if s.Observer != nil {
		return printObserver(out, s, all)
	}
	fmt.Fprintf(out, "cluster %s, as node %d sees it\n", s.ClusterID, s.Node)
	fmt.Fprintf(out, "%s\n\n", clusterVerdict(s))
	printMembers(out, s, now)
	shown := s.Journals
	if !all {
		shown = slices.DeleteFunc(slices.Clone(shown), inOrder)
	}
	if len(shown) > 0 {
		fmt.Fprintln(out)
		printJournals(out, shown)
	}
	if left := len(s.Journals) - len(shown); left > 0 {
		fmt.Fprintf(out, "\n%s in order (shown with --all)\n", many(left, "journal is", "journals are"))
	}
	return printClusterProblems(out, s)
}

// clusterVerdict is the first line.
func clusterVerdict(s *status.Cluster) string {
	c := s.Counts
	var bad []string
	add := func(n int, what string) {
		if n > 0 {
			bad = append(bad, fmt.Sprintf("%s: %d", what, n))
		}
	}
	if s.Stale != "" {
		bad = append(bad, "THE METADATA HAS NO LEADER: what follows may be old")
	}
	add(c.Leaderless, "journals WITHOUT A LEADER")
	add(c.UnderReplicated, "journals with too few copies in sync")
	add(c.NodesDown, "nodes down")
	add(c.Problems, "problems")
	verdict := "in order"
	if len(bad) > 0 {
		verdict = strings.Join(bad, ", ")
	}
	if c.Moving > 0 {
		verdict += "; " + many(c.Moving, "journal is moving", "journals are moving")
	}
	if c.Short > 0 {
		verdict += "; " + many(c.Short, "journal gets", "journals get") + " more copies once there are more nodes"
	}
	if c.NotPreferred > 0 {
		verdict += "; " + many(c.NotPreferred, "is", "are") + " not led by the node that should"
	}
	return fmt.Sprintf("%s, %s: %s", many(c.Nodes, "node", "nodes"), many(c.Journals, "journal", "journals"), verdict)
}

// many is a number and the words that go with it.
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func inOrder(j status.Journal) bool {
	return j.Leader >= 0 && j.InSync >= j.Wanted && !j.Moving &&
		!slices.ContainsFunc(j.Replicas, func(r status.Replica) bool { return r.Problem != "" || r.Doubt != "" })
}

func printMembers(out io.Writer, s *status.Cluster, now time.Time) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tADDRESS\tRACK\tSTATE\tFOR\tMETADATA\tLEADS\tCOPIES\tDISK FREE\tVERSION")
	for _, m := range s.Members {
		state, role, free := "down", "follows", "-"
		if m.Up {
			state = "up"
		}
		if m.Leaving {
			state += ", leaving"
		}
		if m.Voter {
			role = "votes"
		}
		if m.ID == s.Controller {
			role = "leads"
		}
		if m.Disk != nil && m.Disk.Total > 0 {
			free = fmt.Sprintf("%s (%d%%)", bytesText(m.Disk.Free), 100*m.Disk.Free/m.Disk.Total)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", m.ID, cmp.Or(m.Address, "-"), cmp.Or(m.Rack, "-"), state, since(now, m.Since), role, m.Leads, m.Copies, free, cmp.Or(m.Version, "-"))
	}
	_ = w.Flush() // the last write to out tells
}

func printJournals(out io.Writer, journals []status.Journal) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOURNAL\tLEADER\tEPOCH\tIN SYNC\tCOPIES")
	for _, j := range journals {
		leader := "NONE"
		if j.Leader >= 0 {
			leader = fmt.Sprint(j.Leader)
		}
		var copies []string
		for _, r := range j.Replicas {
			copies = append(copies, replicaText(r))
		}
		fmt.Fprintf(w, "%s/%d\t%s\t%d\t%d of %d\t%s\n", j.Stream, j.Journal, leader, j.Epoch, j.InSync, j.Wanted, strings.Join(copies, "; "))
	}
	_ = w.Flush() // the last write to out tells
}

func replicaText(r status.Replica) string {
	text := fmt.Sprintf("%d %s", r.Node, r.State)
	if r.Bytes > 0 || r.Entries > 0 {
		text += fmt.Sprintf(" (%s, %s behind)", bytesText(r.Bytes), many(int(r.Entries), "entry", "entries"))
	}
	if r.Doubt != "" {
		text += " (in doubt)"
	}
	return text
}

// printClusterProblems prints what nodes and copies say of themselves.
func printClusterProblems(out io.Writer, s *status.Cluster) (err error) {
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(out, "\n"+format+"\n", args...)
		}
	}
	if s.Stale != "" {
		say("metadata: %s\n  Most of the nodes %v have to be up. If they are lost for good: daybook cluster recover --help", s.Stale, s.Voters)
	}
	for _, why := range s.Waits {
		say("%s", why)
	}
	for _, m := range s.Members {
		if m.Problem != "" {
			say("node %d: %s", m.ID, m.Problem)
		}
	}
	for _, j := range s.Journals {
		for _, r := range j.Replicas {
			if r.Problem != "" {
				say("journal %s/%d on node %d takes nothing any more: %s", j.Stream, j.Journal, r.Node, r.Problem)
			}
			if r.Doubt != "" {
				say("journal %s/%d on node %d has no vote: %s", j.Stream, j.Journal, r.Node, r.Doubt)
			}
		}
	}
	return err
}

// printMoves prints what a step has begun.
func printMoves(out io.Writer, what string, begun []moves.Move) {
	for _, m := range begun {
		fmt.Fprintf(out, "%s %s/%d: %s -> %s\n", what, m.Stream, m.Journal, nodesText(m.From), nodesText(m.To))
	}
}

// onNodes names nodes.
func onNodes(ids []int32) string {
	if len(ids) == 1 {
		return fmt.Sprintf("node %d", ids[0])
	}
	return "nodes " + nodesText(ids)
}

func nodesText(ids []int32) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprint(id))
	}
	return strings.Join(all, ",")
}

// bytesText is a size for people.
func bytesText(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/1024, 0
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}
