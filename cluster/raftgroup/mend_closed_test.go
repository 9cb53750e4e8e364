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
	must(t, os.Truncate(filepath.Join(damaged, segmentsIn(t, dir)[1]), 1000))
	_, err := storage.Open(damaged, small)
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

// Where this log was never committed, the others' bytes mend nothing, and the copy is to be replaced. Where all have the same they do.
func TestDamageInWhatWasNeverCommittedCannotBeMended(t *testing.T) {
	t.Parallel()
	small := storage.Options{SegmentBytes: 8 << 10}
	grow := func(dir, value string, entries int) *raftgroup.Group {
		t.Helper()
		g := openGroup(t, raftgroup.Options{Dir: dir, ID: "a", Journal: small})
		for range entries {
			_, err := put(g, 0, value)
			must(t, err)
		}
		return g
	}
	dir, theirs := t.TempDir(), t.TempDir()
	must(t, grow(dir, strings.Repeat("x", 900), 40).Close())
	shared := len(segmentsIn(t, dir)) - 1
	must(t, os.CopyFS(theirs, os.DirFS(dir)))
	must(t, grow(dir, strings.Repeat("y", 700), 60).Close())
	other := grow(theirs, strings.Repeat("z", 1300), 60)

	all := segmentsIn(t, dir)
	for i, name := range all[:len(all)-1] {
		damaged := filepath.Join(t.TempDir(), "copy")
		must(t, os.CopyFS(damaged, os.DirFS(dir)))
		must(t, os.Truncate(filepath.Join(damaged, name), 1500))
		_, err := storage.Open(damaged, small)
		var d *storage.DamageError
		if !errors.As(err, &d) {
			t.Fatalf("opening a copy with %s cut short: %v", name, err)
		}
		_, err = raftgroup.MendClosed(t.Context(), vfs.OS{}, damaged, d, onlyCopy{other})
		if i < shared && err != nil {
			t.Errorf("segment %d of %d that all have: %v", i, shared, err)
		}
		if i >= shared && !errors.Is(err, storage.ErrCannotMend) {
			t.Errorf("segment %d, of which %d are those that all have: got %v, want ErrCannotMend", i, shared, err)
		}
	}
}

func segmentsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	must(t, err)
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	slices.Sort(names)
	return names
}
