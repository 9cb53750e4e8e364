package cluster

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"
)

// entryOf applies an entry of a node.
func entryOf(t *testing.T, m *Meta, o origin, term uint64, commands ...command) []result {
	t.Helper()
	data, err := encodeEntry(&o, commands)
	if err != nil {
		t.Fatal(err)
	}
	return m.Apply(&raft.Log{Index: m.Applied() + 1, Term: term, Data: data}).([]result)
}

func reserve() command { return command{ReserveProducerIDs: &reserveProducerIDs{10}} }

// An entry whose sender did not hear what became of it comes again: it takes effect once and is answered the same, also
// by who restored a snapshot in between. One that was overtaken has no effect.
func TestAnEntryThatComesAgainTakesEffectOnce(t *testing.T) {
	m := newMeta()
	must(t, m, command{JoinCluster: &joinCluster{Token: "a"}}, command{JoinCluster: &joinCluster{Token: "b"}})
	o := origin{Node: 1, Start: 1, Seq: 1}
	first := entryOf(t, m, o, 1, reserve())[0].value
	restored := newMeta()
	if err := restored.Restore(io.NopCloser(bytes.NewReader(snapshotOf(t, m)))); err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]*Meta{"the same": m, "restored": restored} {
		if got := entryOf(t, state, o, 2, reserve())[0].value; got != first {
			t.Errorf("%s: the repetition got ids from %v, want %v", name, got, first)
		}
		if got := entryOf(t, state, origin{Node: 2, Start: 1, Seq: 1}, 2, reserve())[0].value; got != first.(int64)+10 {
			t.Errorf("%s: another node got ids from %v, want %v", name, got, first.(int64)+10)
		}
		next := entryOf(t, state, origin{Node: 1, Start: 2, Seq: 1}, 2, reserve())[0]
		if next.value != first.(int64)+20 {
			t.Errorf("%s: the next start got %v", name, next)
		}
		if late := entryOf(t, state, origin{Node: 1, Start: 1, Seq: 7}, 2, reserve())[0]; !errors.Is(late.err, ErrConflict) {
			t.Errorf("%s: an entry from before the restart got %v, want ErrConflict", name, late)
		}
		if foreign := entryOf(t, state, origin{Node: 9, Start: 1, Seq: 1}, 2, reserve())[0]; !errors.Is(foreign.err, ErrRemoved) {
			t.Errorf("%s: an entry of no member got %v, want ErrRemoved", name, foreign)
		}
	}
}

// What a coordinator decided under its epoch has no effect in the log of another one.
func TestACommitOfADeposedCoordinatorHasNoEffect(t *testing.T) {
	m, s := filled(t)
	commit := func(offset int64) command {
		return command{CommitOffsets: &commitOffsets{Group: "c", Term: 4, Offsets: []GroupOffset{{Stream: s.ID, Offset: offset}}}}
	}
	if r := entryOf(t, m, origin{1, 9, 1}, 4, commit(10)); r[0].err != nil {
		t.Fatal(r[0].err)
	}
	if r := entryOf(t, m, origin{1, 9, 2}, 5, commit(3)); !errors.Is(r[0].err, ErrNotCoordinator) {
		t.Errorf("got %v, want ErrNotCoordinator", r[0].err)
	}
	if o, _, _ := m.GroupOffset("c", StreamPartition{Stream: s.ID}); o.Offset != 10 {
		t.Errorf("the offset is %d, want 10", o.Offset)
	}
}

// Every error that has a meaning keeps it on the way to another node.
func TestErrorsKeepTheirMeaningOnTheWay(t *testing.T) {
	for code, is := range errorCodes() {
		got := toWire(is).err()
		if !errors.Is(got, is) || got.Error() != is.Error() {
			t.Errorf("%s: %v came as %v", code, is, got)
		}
		wrapped := errors.Join(errors.New("what was done"), is)
		if got := toWire(wrapped).err(); !errors.Is(got, is) || got.Error() != wrapped.Error() {
			t.Errorf("%s: %v came as %v", code, wrapped, got)
		}
	}
}
