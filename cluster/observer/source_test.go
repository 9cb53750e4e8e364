package observer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// An upstream does not tell what is older than the observer has, nor the same again.
func TestADescriptionIsNewOrNotTold(t *testing.T) {
	t.Parallel()
	file, _, err := datadir.OpenFile(vfs.OS{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	meta := metadata.New()
	s := NewSource(SourceOptions{Meta: meta, File: file})
	entry, err := metadata.EncodeEntry(nil, []metadata.Command{{Found: &metadata.Found{ClusterID: "c"}}, {CreateStream: &metadata.CreateStream{Stream: metadata.Stream{ID: metadata.NewStreamID(), Name: "a", Partitions: 1, Journals: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	meta.Apply(&raft.Log{Index: 5, Data: entry})
	d, err := s.Describe(t.Context(), 5, [32]byte{})
	if err != nil || d.Applied != 5 {
		t.Fatalf("described up to %d: %v", d.Applied, err)
	}
	for what, ask := range map[string]func(ctx context.Context) error{
		"the same":        func(ctx context.Context) error { _, err := s.Describe(ctx, 5, d.Sum); return err },
		"something older": func(ctx context.Context) error { _, err := s.Describe(ctx, 6, [32]byte{}); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s was told: %v", what, err)
		}
		cancel()
	}
	// It went on without its majority, with fewer entries.
	if err := file.Update(func(i *datadir.Identity) { i.Generation = 1 }); err != nil {
		t.Fatal(err)
	}
	s.last = nil
	if after, err := s.Describe(t.Context(), d.Applied+1, [32]byte{}); err != nil || after.Applied <= d.Applied {
		t.Errorf("another generation is told up to %d: %v", after.Applied, err)
	}
}
