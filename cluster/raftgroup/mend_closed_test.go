package raftgroup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// onlyCopy is one other copy, which can be reached.
type onlyCopy struct{ *raftgroup.Group }

// Nodes implements raftgroup.Copies.
func (onlyCopy) Nodes() []string { return []string{"other"} }

// Ask implements raftgroup.Copies.
func (c onlyCopy) Ask(_ context.Context, _ string, question []byte) ([]byte, error) {
	return c.Answer(question)
}

// Bytes that no other copy has any more mend nothing, so the copy is to be replaced, and does not wait for ever.
func TestDamageInWhatOthersHaveRemovedCannotBeMended(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := storage.Options{SegmentBytes: 8 << 10}
	g := openGroup(t, raftgroup.Options{Dir: dir, ID: "a", Journal: small})
	for range 60 {
		_, err := put(g, 0, strings.Repeat("x", 900))
		must(t, err)
	}
	must(t, g.Close())
	damaged := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(damaged, os.DirFS(dir)))
	segments, err := filepath.Glob(filepath.Join(damaged, "*.seg"))
	must(t, err)
	slices.Sort(segments)
	data, err := os.ReadFile(segments[1])
	must(t, err)
	data[1000] ^= 1
	must(t, os.WriteFile(segments[1], data, 0o644))
	must(t, os.Remove(strings.TrimSuffix(segments[1], ".seg")+".idx")) // so that the start reads the segment
	_, err = storage.Open(damaged, small)
	var d *storage.DamageError
	if !errors.As(err, &d) {
		t.Fatalf("opening the damaged copy: %v", err)
	}

	less := small
	less.Retention = storage.Retention{Bytes: 1}
	other := openGroup(t, raftgroup.Options{Dir: dir, ID: "a", Journal: less, RetainEvery: 10 * time.Millisecond})
	for deadline := time.Now().Add(30 * time.Second); other.Journal().Front().Position <= d.Position; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log begins at position %d yet, the damage is at %d", other.Journal().Front().Position, d.Position)
		}
	}
	if _, err := raftgroup.MendClosed(t.Context(), vfs.OS{}, damaged, d, onlyCopy{other}); !errors.Is(err, storage.ErrCannotMend) {
		t.Errorf("got %v, want ErrCannotMend", err)
	}
}
