package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// applyNow applies commands as entry i.
func applyNow(t *testing.T, m *Meta, i uint64, commands ...command) []result {
	t.Helper()
	data, err := encodeEntry(nil, commands)
	if err != nil {
		t.Fatal(err)
	}
	return m.Apply(&raft.Log{Index: i, Data: data}).([]result)
}

// What a node that was cut off tells takes no stream away.
func TestAnObserverFollowsNoOlderMetadata(t *testing.T) {
	t.Parallel()
	m := newMeta()
	a, b := &Stream{ID: newStreamID(), Name: "a", Partitions: 1, Journals: 1}, &Stream{ID: newStreamID(), Name: "b", Partitions: 1, Journals: 1}
	r := applyNow(t, m, 1, command{Mirror: &mirrorStreams{Applied: 7, Put: []*Stream{a, b}}})
	if r[0].err != nil {
		t.Fatal(r[0].err)
	}
	r = applyNow(t, m, 2, command{Mirror: &mirrorStreams{Applied: 6, Gone: []StreamID{b.ID}}})
	if _, ok := m.Stream("b"); !ok || !errors.Is(r[0].err, ErrConflict) {
		t.Errorf("an older description took a stream away: %v", r[0].err)
	}
	again := &Stream{ID: newStreamID(), Name: "b", Partitions: 2, Journals: 1}
	applyNow(t, m, 3, command{Mirror: &mirrorStreams{Applied: 8, Gone: []StreamID{b.ID}, Put: []*Stream{again}}})
	applyNow(t, m, 4, command{Mirror: &mirrorStreams{Applied: 9, Put: []*Stream{b}}}) // an id does not come back
	if s, ok := m.Stream("b"); !ok || s.ID != again.ID || !m.known()[b.ID].Deleting || m.Mirrored() != 9 {
		t.Errorf("the stream is %+v, seen up to %d", s, m.Mirrored())
	}
	restored := newMeta()
	restored.load(m.image())
	if restored.Mirrored() != 9 || len(restored.Streams()) != 2 {
		t.Errorf("a snapshot has %d streams up to %d", len(restored.Streams()), restored.Mirrored())
	}
}

// An upstream does not tell what is older than the observer has, nor the same again.
func TestADescriptionIsNewOrNotTold(t *testing.T) {
	t.Parallel()
	n := &Node{meta: newMeta(), file: &nodeFile{}}
	n.source.n = n
	applyNow(t, n.meta, 5, command{Found: &found{"c"}}, command{CreateStream: &createStream{Stream{ID: newStreamID(), Name: "a", Partitions: 1, Journals: 1}}})
	d, err := n.source.Describe(t.Context(), 5, [32]byte{})
	if err != nil || d.Applied != 5 {
		t.Fatalf("described up to %d: %v", d.Applied, err)
	}
	for what, ask := range map[string]func(ctx context.Context) error{
		"the same":        func(ctx context.Context) error { _, err := n.source.Describe(ctx, 5, d.Sum); return err },
		"something older": func(ctx context.Context) error { _, err := n.source.Describe(ctx, 6, [32]byte{}); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s was told: %v", what, err)
		}
		cancel()
	}
	n.file.now.Generation = 1 // it went on without its majority, with fewer entries
	n.source.last = nil
	if after, err := n.source.Describe(t.Context(), d.Applied+1, [32]byte{}); err != nil || after.Applied <= d.Applied {
		t.Errorf("another generation is told up to %d: %v", after.Applied, err)
	}
}
