package moves

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// world is a cluster without its nodes: its metadata, and who is up, leads, and has everything.
type world struct {
	t     *testing.T
	meta  *metadata.State
	index uint64
	down  map[int32]bool
	// behind are nodes whose copies lack something.
	behind map[int32]bool
	needed int32
}

func newWorld(t *testing.T, nodes int) (*world, *Mover) {
	w := &world{t: t, meta: metadata.New(), down: map[int32]bool{}, behind: map[int32]bool{}}
	for i := range nodes {
		w.must(metadata.Command{JoinCluster: &metadata.JoinCluster{Token: fmt.Sprint(i), Address: fmt.Sprint("node", i)}})
	}
	return w, New(Options{
		Self: 1, Meta: w.meta, Logger: slog.New(slog.DiscardHandler), Propose: w.propose,
		Sync:   func(ctx context.Context) error { return ctx.Err() },
		Up:     func(node int32) bool { return !w.down[node] },
		Lead:   w.lead,
		Needed: func(node int32) bool { return node == w.needed },
	})
}

func (w *world) propose(_ context.Context, c metadata.Command) (any, error) {
	entry, err := metadata.EncodeEntry(nil, []metadata.Command{c})
	if err != nil {
		return nil, err
	}
	w.index++
	r := w.meta.Apply(&raft.Log{Index: w.index, Data: entry}).([]metadata.Result)[0]
	return r.Value, r.Err
}

func (w *world) must(c metadata.Command) any {
	w.t.Helper()
	v, err := w.propose(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) lead(k metadata.StreamJournal) (l Lead, err error) {
	s, ok := w.meta.StreamByID(k.Stream)
	if !ok {
		return l, metadata.ErrUnknownStream
	}
	on := metadata.NodesOf(s.ReplicasOf(k.Journal))
	l.InSync = slices.DeleteFunc(slices.Clone(on), func(id int32) bool { return w.down[id] || w.behind[id] })
	l.Node = -1
	if 2*len(l.InSync) > len(on) {
		l.Node = l.InSync[0]
	}
	return l, nil
}

// create makes a stream that lies where a Mover puts it.
func (w *world) create(m *Mover, name string, journals, replicas int32) *metadata.Stream {
	w.t.Helper()
	new := metadata.NewStream{Name: name, Partitions: journals, Journals: journals}
	s, err := new.Stream(1)
	if err == nil {
		err = m.Place(s, replicas, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return w.must(metadata.Command{CreateStream: &metadata.CreateStream{Stream: *s}}).(*metadata.Stream)
}

// settle has all old copies given up: the new ones have everything.
func (w *world) settle() {
	for _, s := range w.meta.Streams() {
		for j := range s.Journals {
			for _, r := range s.LeavingOf(j) {
				w.must(metadata.Command{DropReplica: &metadata.DropReplica{ID: s.ID, Journal: j, Replica: r}})
			}
		}
	}
}

// A node that joins gets its share, a few journals at a time, and nothing is left to do then.
func TestSpreadingGoesInSteps(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t, 3)
	w.create(m, "s", 20, 3)
	w.must(metadata.Command{JoinCluster: &metadata.JoinCluster{Token: "new", Address: "new"}})
	planned, err := m.Rebalance(t.Context(), true)
	if err != nil || len(planned.Begun) > 0 || len(planned.Waiting) < 15 {
		t.Fatalf("planned %+v: %v", planned, err)
	}
	for range 20 {
		p, err := m.Rebalance(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		copying := 0
		for _, s := range w.meta.Streams() {
			for j := range s.Journals {
				if len(s.LeavingOf(j)) > 0 {
					copying++
				}
			}
		}
		if copying > atOnce {
			t.Fatalf("%d journals are on their way at a time", copying)
		}
		if p.Done {
			for _, n := range m.candidates() {
				if n.Replicas != 15 || n.Leads != 5 {
					t.Errorf("node %d has %d replicas and leads %d, want 15 and 5", n.ID, n.Replicas, n.Leads)
				}
			}
			return
		}
		w.settle()
	}
	t.Error("it goes on for ever")
}

func TestNothingIsSpreadWhileANodeIsDown(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t, 3)
	w.down[2] = true
	if _, err := m.Rebalance(t.Context(), false); !errors.Is(err, ErrMembersDown) || !strings.Contains(err.Error(), "[2]") {
		t.Errorf("it is spread: %v", err)
	}
}

// A node goes when its copies have gone and the metadata can do without it, and is nobody's choice meanwhile.
func TestANodeGoesWhenNothingNeedsIt(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t, 4)
	w.create(m, "s", 2, 3)
	w.needed = 4
	for range 10 {
		p, err := m.Remove(t.Context(), Removal{Node: 4})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Waits) > 0 && strings.Contains(p.Waits[0], "the metadata can't go on") {
			w.needed = 0
		}
		if p.Done {
			if _, there := w.meta.Member(4); there || w.needed != 0 {
				t.Errorf("it is done; the node is there: %v, the metadata needs it: %v", there, w.needed == 4)
			}
			return
		}
		w.settle()
		for _, j := range w.create(m, fmt.Sprint("t", w.index), 1, 3).Placement {
			if _, has := metadata.FindReplica(j, 4); has {
				t.Error("a new stream lies on a node that is taken out")
			}
		}
	}
	t.Error("it is never done")
}

// What would wait for ever is refused before the node is held for leaving.
func TestANodeStaysThatCannotBeEmptied(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t, 3)
	w.create(m, "s", 1, 3)
	if _, err := m.Remove(t.Context(), Removal{Node: 3}); !errors.Is(err, metadata.ErrMemberInUse) {
		t.Errorf("with no node to take its copies: %v", err)
	}
	w.down[2], w.down[3] = true, true
	if _, err := m.Remove(t.Context(), Removal{Node: 3, Fewer: true}); !errors.Is(err, ErrMembersDown) {
		t.Errorf("with most copies down: %v", err)
	}
	if n, _ := w.meta.Member(3); n.Leaving {
		t.Error("it is held for leaving")
	}
}

// Copies that were given up for want of nodes are made when there are nodes again.
func TestMissingCopiesAreMade(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t, 2)
	s := w.create(m, "s", 1, 0) // three, if there were as many nodes
	m.Refill(t.Context())
	if got, _ := w.meta.StreamByID(s.ID); len(got.ReplicasOf(0)) != 2 {
		t.Fatalf("it lies on %v", got.ReplicasOf(0))
	}
	w.must(metadata.Command{JoinCluster: &metadata.JoinCluster{Token: "new", Address: "new"}})
	w.down[3] = true
	m.Refill(t.Context())
	if got, _ := w.meta.StreamByID(s.ID); len(got.ReplicasOf(0)) != 2 {
		t.Fatalf("a copy is placed on a node that is down: %v", got.ReplicasOf(0))
	}
	w.down[3] = false
	m.Refill(t.Context())
	if got, _ := w.meta.StreamByID(s.ID); len(got.ReplicasOf(0)) != 3 {
		t.Errorf("it lies on %v", got.ReplicasOf(0))
	}
}
