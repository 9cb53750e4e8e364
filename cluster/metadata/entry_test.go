package metadata

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"
)

// entryOf applies an entry of a node.
func entryOf(t *testing.T, m *State, o Origin, term uint64, commands ...Command) []Result {
	t.Helper()
	data, err := EncodeEntry(&o, commands)
	if err != nil {
		t.Fatal(err)
	}
	return m.Apply(&raft.Log{Index: m.Applied() + 1, Term: term, Data: data}).([]Result)
}

func reserve() Command { return Command{ReserveProducerIDs: &ReserveProducerIDs{10}} }

// An entry whose sender did not hear what became of it comes again: it takes effect once and is answered the same, also
// by who restored a snapshot in between. One that was overtaken has no effect.
func TestAnEntryThatComesAgainTakesEffectOnce(t *testing.T) {
	m := New()
	must(t, m, Command{JoinCluster: &JoinCluster{Token: "a"}}, Command{JoinCluster: &JoinCluster{Token: "b"}})
	o := Origin{Node: 1, Start: 1, Seq: 1}
	first := entryOf(t, m, o, 1, reserve())[0].Value
	restored := New()
	if err := restored.Restore(io.NopCloser(bytes.NewReader(snapshotOf(t, m)))); err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]*State{"the same": m, "restored": restored} {
		if got := entryOf(t, state, o, 2, reserve())[0].Value; got != first {
			t.Errorf("%s: the repetition got ids from %v, want %v", name, got, first)
		}
		if got := entryOf(t, state, Origin{Node: 2, Start: 1, Seq: 1}, 2, reserve())[0].Value; got != first.(int64)+10 {
			t.Errorf("%s: another node got ids from %v, want %v", name, got, first.(int64)+10)
		}
		next := entryOf(t, state, Origin{Node: 1, Start: 2, Seq: 1}, 2, reserve())[0]
		if next.Value != first.(int64)+20 {
			t.Errorf("%s: the next start got %v", name, next)
		}
		if late := entryOf(t, state, Origin{Node: 1, Start: 1, Seq: 7}, 2, reserve())[0]; !errors.Is(late.Err, ErrConflict) {
			t.Errorf("%s: an entry from before the restart got %v, want ErrConflict", name, late)
		}
		if foreign := entryOf(t, state, Origin{Node: 9, Start: 1, Seq: 1}, 2, reserve())[0]; !errors.Is(foreign.Err, ErrRemoved) {
			t.Errorf("%s: an entry of no member got %v, want ErrRemoved", name, foreign)
		}
	}
}

// What a coordinator decided under its epoch has no effect in the log of another one.
func TestACommitOfADeposedCoordinatorHasNoEffect(t *testing.T) {
	m, s := filled(t)
	commit := func(offset int64) Command {
		return Command{CommitOffsets: &CommitOffsets{Group: "c", Term: 4, Offsets: []GroupOffset{{Stream: s.ID, Offset: offset}}}}
	}
	if r := entryOf(t, m, Origin{1, 9, 1}, 4, commit(10)); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	if r := entryOf(t, m, Origin{1, 9, 2}, 5, commit(3)); !errors.Is(r[0].Err, ErrNotCoordinator) {
		t.Errorf("got %v, want ErrNotCoordinator", r[0].Err)
	}
	if o, _, _ := m.GroupOffset("c", StreamPartition{Stream: s.ID}); o.Offset != 10 {
		t.Errorf("the offset is %d, want 10", o.Offset)
	}
}
