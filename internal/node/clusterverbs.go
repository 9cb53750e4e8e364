package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-data/daybook/cluster/moves"
	"github.com/daybook-data/daybook/cluster/status"
)

// ClusterVerbs are those of `daybook cluster`.
type ClusterVerbs struct {
	Dir  string // folder of a node whose server runs on this machine
	JSON bool
	Out  io.Writer
}

// stepEvery is how often a verb that has many journals moved takes its next step.
const stepEvery = time.Second

// errNotInOrder makes `daybook cluster status` fail.
var errNotInOrder = errors.New("the cluster is not in order")

func (v *ClusterVerbs) client() (*clusterClient, error) { return newClusterClient(v.Dir) }

func (v *ClusterVerbs) printJSON(value any) error {
	e := json.NewEncoder(v.Out)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// done says that something was done.
func (v *ClusterVerbs) done(err error, format string, args ...any) error {
	switch {
	case err != nil:
		return err
	case v.JSON:
		return v.printJSON(map[string]any{"done": true})
	}
	_, err = fmt.Fprintf(v.Out, format+"\n", args...)
	return err
}

// Status prints how the cluster is; with all, journals that are in order too. It is an error if something is not.
func (v *ClusterVerbs) Status(ctx context.Context, all bool) error {
	client, err := v.client()
	if err != nil {
		return err
	}
	s, err := client.status(ctx)
	if err != nil {
		return err
	}
	if v.JSON {
		err = v.printJSON(s)
	} else {
		err = printClusterStatus(v.Out, &s, all, time.Now())
	}
	if c := s.Counts; err == nil && (s.Stale != "" || c.Leaderless+c.UnderReplicated+c.NodesDown+c.Problems > 0) {
		err = errNotInOrder
	}
	return err
}

const addText = `On the new machine, with an empty folder:

  daybook server --data DIR --kafka HOST:9092 --cluster HOST:9100 --join %[1]s

(with a file: cluster.join, and the same authority in cluster.tls as here). When it is up:

  daybook cluster status --data %[2]s
  daybook cluster rebalance --data %[2]s      # gives it its share of what there is
`

// Add prints how a node joins.
func (v *ClusterVerbs) Add(ctx context.Context) error {
	client, err := v.client()
	if err != nil {
		return err
	}
	s, err := client.status(ctx)
	if err != nil {
		return err
	}
	if s.Observer != nil {
		return fmt.Errorf("%w: %w", ErrConfig, errAskNode)
	}
	var join []string
	for _, m := range s.Members {
		if m.Up && m.Address != "" {
			join = append(join, m.Address)
		}
	}
	if len(join) == 0 {
		return fmt.Errorf("%w: the server was started without --cluster: start it with --cluster HOST:9100, then others can join it", ErrConfig)
	}
	if v.JSON {
		return v.printJSON(map[string]any{"join": join})
	}
	_, err = fmt.Fprintf(v.Out, addText, strings.Join(join, ","), v.Dir)
	return err
}

// Move puts a journal, STREAM/JOURNAL, onto other nodes.
func (v *ClusterVerbs) Move(ctx context.Context, of string, to []int32) error {
	client, q, err := v.journal(of)
	if err != nil {
		return err
	}
	q.Nodes = to
	var a moveAnswer
	if err := client.ask(ctx, "move", q, &a); err != nil {
		return err
	}
	changed := ""
	if a.Had != 0 && a.Had != len(to) {
		changed = fmt.Sprintf("; it had %s, and has %d from now on", many(a.Had, "copy", "copies"), len(to))
	}
	return v.done(nil, "moving %s to %s%s", q.name(), onNodes(to), changed)
}

// Transfer makes a node the one that leads a journal.
func (v *ClusterVerbs) Transfer(ctx context.Context, of string, to int32) error {
	client, q, err := v.journal(of)
	if err != nil {
		return err
	}
	q.Node = to
	var a transferAnswer
	if err := client.ask(ctx, "transfer", q, &a); err != nil || v.JSON {
		if err == nil {
			err = v.printJSON(a)
		}
		return err
	}
	if a.Later != "" {
		return v.done(nil, "node %d leads %s as soon as it can: %s", to, q.name(), a.Later)
	}
	return v.done(nil, "node %d leads %s", to, q.name())
}

// journal parses STREAM/JOURNAL; the number may be left out where a stream has one journal.
func (v *ClusterVerbs) journal(of string) (client *clusterClient, q journalQuestion, err error) {
	stream, number, given := strings.Cut(of, "/")
	q.Stream, q.Journal = stream, unnumbered
	if given {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 {
			return nil, q, fmt.Errorf("%w: %q is not STREAM/JOURNAL with the journal's number", ErrConfig, of)
		}
		q.Journal = int32(n)
	}
	client, err = v.client()
	return client, q, err
}

// name is that of the journal.
func (q journalQuestion) name() string { return fmt.Sprintf("%s/%d", q.Stream, max(q.Journal, 0)) }

// Removal says how a node is taken out.
type Removal = moves.Removal

// Remove empties a node and takes it out, or ends that.
func (v *ClusterVerbs) Remove(ctx context.Context, r Removal) error {
	client, err := v.client()
	if err != nil {
		return err
	}
	if r.Undo {
		var p moves.Progress
		return v.done(client.ask(ctx, "remove", r, &p), "node %d stays", r.Node)
	}
	err = v.steps(ctx, client, "remove", r, false)
	if v.JSON {
		return err
	}
	return v.done(err, "node %d is out of the cluster", r.Node)
}

// Rebalance spreads copies and leads over the nodes.
func (v *ClusterVerbs) Rebalance(ctx context.Context, dry bool) error {
	client, err := v.client()
	if err != nil {
		return err
	}
	err = v.steps(ctx, client, "rebalance", rebalanceQuestion{dry}, dry)
	if v.JSON || dry {
		return err
	}
	return v.done(err, "the load is spread")
}

// Replicas gives a stream's journals another number of copies; all streams' if none is named.
func (v *ClusterVerbs) Replicas(ctx context.Context, stream string, count int, dry bool) error {
	client, err := v.client()
	if err != nil {
		return err
	}
	streams := []string{stream}
	if stream == "" {
		s, err := client.status(ctx)
		if err != nil {
			return err
		}
		streams = streamNames(&s)
	}
	for _, name := range streams {
		err := v.steps(ctx, client, "replicas", replicasQuestion{name, count, dry}, dry)
		if err != nil && stream == "" {
			err = fmt.Errorf("stream %s: %w", name, err)
		}
		if err != nil {
			return err
		}
	}
	if v.JSON || dry {
		return nil
	}
	return v.done(nil, "%s %s", many(len(streams), "stream has", "streams have"), many(count, "copy", "copies"))
}

func streamNames(s *status.Cluster) (names []string) {
	for i, j := range s.Journals {
		if i == 0 || s.Journals[i-1].Stream != j.Stream {
			names = append(names, j.Stream)
		}
	}
	return names
}

// steps takes steps until nothing is left, and says what each has begun; of a dry run, what there is to do.
func (v *ClusterVerbs) steps(ctx context.Context, client *clusterClient, verb string, question any, dry bool) error {
	for last := ""; ; {
		var p moves.Progress
		if err := client.ask(ctx, verb, question, &p); err != nil {
			return err
		}
		if dry {
			return v.planned(p)
		}
		if v.JSON {
			if err := v.printJSON(p); err != nil {
				return err
			}
		} else {
			printMoves(v.Out, "moving", p.Begun)
			left := fmt.Sprintf("%s on the way, %d waiting", many(p.Moving, "journal", "journals"), len(p.Waiting))
			if left = strings.Join(append([]string{left}, p.Waits...), "\n"); !p.Done && left != last {
				fmt.Fprintln(v.Out, left)
				last = left
			}
		}
		if p.Done {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("interrupted: what has begun goes on; give the command again for the rest")
		case <-time.After(stepEvery):
		}
	}
}

func (v *ClusterVerbs) planned(p moves.Progress) error {
	if v.JSON {
		return v.printJSON(p)
	}
	printMoves(v.Out, "would move", p.Waiting)
	_, err := fmt.Fprintln(v.Out, many(len(p.Waiting), "change", "changes"))
	return err
}
