package metadata

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// applyNow applies commands as entry i.
func applyNow(t *testing.T, m *State, i uint64, commands ...Command) []Result {
	t.Helper()
	data, err := EncodeEntry(nil, commands)
	if err != nil {
		t.Fatal(err)
	}
	return m.Apply(&raft.Log{Index: i, Data: data}).([]Result)
}

// What a node that was cut off tells takes no stream away.
func TestAnObserverFollowsNoOlderMetadata(t *testing.T) {
	t.Parallel()
	m := New()
	a, b := &Stream{ID: NewStreamID(), Name: "a", Partitions: 1, Journals: 1}, &Stream{ID: NewStreamID(), Name: "b", Partitions: 1, Journals: 1}
	r := applyNow(t, m, 1, Command{Mirror: &MirrorStreams{Applied: 7, Put: []*Stream{a, b}}})
	if r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	r = applyNow(t, m, 2, Command{Mirror: &MirrorStreams{Applied: 6, Gone: []StreamID{b.ID}}})
	if _, ok := m.Stream("b"); !ok || !errors.Is(r[0].Err, ErrConflict) {
		t.Errorf("an older description took a stream away: %v", r[0].Err)
	}
	again := &Stream{ID: NewStreamID(), Name: "b", Partitions: 2, Journals: 1}
	applyNow(t, m, 3, Command{Mirror: &MirrorStreams{Applied: 8, Gone: []StreamID{b.ID}, Put: []*Stream{again}}})
	applyNow(t, m, 4, Command{Mirror: &MirrorStreams{Applied: 9, Put: []*Stream{b}}}) // an id does not come back
	if s, ok := m.Stream("b"); !ok || s.ID != again.ID || !m.Known()[b.ID].Deleting || m.Mirrored() != 9 {
		t.Errorf("the stream is %+v, seen up to %d", s, m.Mirrored())
	}
	restored := New()
	restored.load(m.image())
	if restored.Mirrored() != 9 || len(restored.Streams()) != 2 {
		t.Errorf("a snapshot has %d streams up to %d", len(restored.Streams()), restored.Mirrored())
	}
}
