package raftgroup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// counts is a state machine that counts its commands.
type counts struct {
	mu   sync.Mutex
	seen map[string]int
}

func newCounts() *counts { return &counts{seen: map[string]int{}} }

func (c *counts) Apply(l *raft.Log) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[string(l.Data)]++
	return c.seen[string(l.Data)]
}

func (c *counts) of(command string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[command]
}

func (c *counts) Snapshot() (raft.FSMSnapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := json.Marshal(c.seen)
	return image(b), err
}

func (c *counts) Restore(r io.ReadCloser) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = map[string]int{}
	return json.NewDecoder(r).Decode(&c.seen)
}

type image []byte

func (i image) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(i); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

func (i image) Release() {}

func openFSM(t testing.TB, o raftgroup.Options) (*raftgroup.Machine, *counts) {
	t.Helper()
	c := newCounts()
	g, err := raftgroup.OpenMachine(o, c)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g, c
}

func apply(t testing.TB, g *raftgroup.Machine, command string) {
	t.Helper()
	if _, err := g.Apply(context.Background(), []byte(command)); err != nil {
		t.Fatalf("applying %s: %v", command, err)
	}
}

func TestCommandsAreAppliedOnceAndSurviveAKill(t *testing.T) {
	t.Parallel()
	o := raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 8 << 10}}
	g, _ := openFSM(t, o)
	for i := range 150 {
		apply(t, g, fmt.Sprint(i%50))
		if i == 100 {
			must(t, g.Snapshot())
		}
	}
	if got, err := g.Apply(context.Background(), []byte("0")); got != 4 || err != nil {
		t.Fatalf("result is %v, %v; want 4", got, err)
	}
	o.Dir = copyFiles(t, o.Dir)
	for range 2 {
		again, c := openFSM(t, o)
		for i := range 50 {
			want := 3
			if i == 0 {
				want = 4
			}
			if got := c.of(fmt.Sprint(i)); got != want {
				t.Errorf("command %d was applied %d times, want %d", i, got, want)
			}
		}
		must(t, again.Close())
	}
}

// P9: a damaged snapshot is set aside, not deleted; the one before it and the log give the same state.
func TestADamagedSnapshotLosesNothing(t *testing.T) {
	t.Parallel()
	o := raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 8 << 10}}
	g, _ := openFSM(t, o)
	for round := range 3 {
		for i := range 40 {
			apply(t, g, fmt.Sprint(i))
		}
		must(t, g.Snapshot())
		if round == 1 {
			apply(t, g, "between")
		}
	}
	apply(t, g, "behind")
	must(t, g.Close())
	dir := filepath.Join(o.Dir, "snapshots")
	names, err := os.ReadDir(dir)
	must(t, err)
	if len(names) != 2 {
		t.Fatalf("%d snapshots are kept, want 2", len(names))
	}
	newest := filepath.Join(dir, names[1].Name())
	b, err := os.ReadFile(newest)
	must(t, err)
	b[len(b)-3] ^= 1
	must(t, os.WriteFile(newest, b, 0o644))
	_, c := openFSM(t, o)
	for command, want := range map[string]int{"0": 3, "39": 3, "between": 1, "behind": 1} {
		if got := c.of(command); got != want {
			t.Errorf("%s was applied %d times, want %d", command, got, want)
		}
	}
	if _, err := os.Stat(newest + ".damaged"); err != nil {
		t.Errorf("the damaged snapshot was not kept: %v", err)
	}
}

// If what the log no longer has is in no good snapshot, the group does not start with a hole in its state.
func TestALostSnapshotStopsTheStart(t *testing.T) {
	t.Parallel()
	o := raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 8 << 10}}
	g, _ := openFSM(t, o)
	apply(t, g, "x")
	must(t, g.Snapshot())
	last, err := g.Journal().LastIndex()
	must(t, err)
	must(t, g.Close())
	j, err := storage.Open(o.Dir, storage.Options{Commands: true, SegmentBytes: 8 << 10})
	must(t, err)
	must(t, j.DeleteRange(1, last-1))
	must(t, j.Close())
	must(t, os.RemoveAll(filepath.Join(o.Dir, "snapshots")))
	if g, err := raftgroup.OpenMachine(o, newCounts()); err == nil || !strings.Contains(err.Error(), "snapshot") {
		if g != nil {
			_ = g.Close()
		}
		t.Fatalf("got %v, want an error about the snapshot", err)
	}
}

func TestTheFrontOfACommandLogGoesAfterSnapshots(t *testing.T) {
	t.Parallel()
	o := raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 64 << 10}}
	g, c := openFSM(t, o)
	var writers sync.WaitGroup
	for w := range 32 {
		writers.Go(func() {
			for i := range 640 {
				apply(t, g, fmt.Sprint(w, "-", i))
			}
		})
	}
	writers.Wait()
	must(t, g.Snapshot())
	first, err := g.Journal().FirstIndex()
	must(t, err)
	if first < 2 {
		t.Errorf("first entry is %d, nothing was removed", first)
	}
	if n := c.of("31-639"); n != 1 {
		t.Errorf("last command was applied %d times", n)
	}
	must(t, g.Close())
	_, again := openFSM(t, o)
	for w := range 32 {
		for i := range 640 {
			if n := again.of(fmt.Sprint(w, "-", i)); n != 1 {
				t.Fatalf("command %d-%d was applied %d times", w, i, n)
			}
		}
	}
}

// A vote that cannot be stored must not be given, and must not take the process down: raft would panic.
func TestAFailedVoteEndsOnlyItsGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fsys := vfs.NewFaulty(vfs.OS{})
	o := raftgroup.Options{Dir: dir, Timeout: time.Minute, Journal: storage.Options{FS: fsys}}
	g, _ := openFSM(t, o)
	apply(t, g, "x")
	must(t, g.Close())
	fsys.Inject(vfs.Fault{Op: vfs.OpSync, Name: "start."})
	began := time.Now()
	_, err := raftgroup.OpenMachine(o, newCounts())
	if !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want the disk's error", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v to say so", took)
	}
	fsys.Heal()
	_, c := openFSM(t, o)
	if c.of("x") != 1 {
		t.Error("the command is gone")
	}
}

// On a full disk commands are refused and the group goes on leading; it resumes by itself, and starts on the full disk.
func TestAFullDiskRefusesCommandsAndResumes(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewFaulty(vfs.OS{})
	o := raftgroup.Options{Dir: t.TempDir(), Journal: storage.Options{SegmentBytes: 64 << 10, FS: fsys}}
	g, _ := openFSM(t, o)
	applied := 0
	fill := func() {
		fsys.Limit(64 << 10)
		for refused := 0; refused < 10; {
			_, err := g.Apply(context.Background(), fmt.Appendf(nil, "%0500d", applied))
			switch {
			case err == nil:
				applied++
			case errors.Is(err, storage.ErrDiskFull):
				refused++
			default:
				t.Fatalf("got %v, want ErrDiskFull", err)
			}
		}
		if _, self := g.Leader(); !self || g.Err() != nil {
			t.Fatalf("the group ended on a full disk: %v", g.Err())
		}
	}
	fill()
	fsys.Heal()
	apply(t, g, "resumed")
	fill()
	for range 5 {
		must(t, g.Close())
		var c *counts
		g, c = openFSM(t, o)
		for i := range applied {
			if c.of(fmt.Sprintf("%0500d", i)) != 1 {
				t.Fatalf("command %d is gone", i)
			}
		}
	}
	fsys.Heal()
	apply(t, g, "resumed again")
}
