package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// told is what a node logged.
type told struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *told) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *told) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// limited opens a node on a disk with bounds, which is looked at all the time.
func limited(t *testing.T, change func(*cluster.Options)) (*cluster.Node, *vfs.Faulty, *told) {
	t.Helper()
	faulty, log := vfs.NewFaulty(vfs.OS{}), &told{}
	n := openNode(t, t.TempDir(), func(o *cluster.Options) {
		o.FS, o.Logger, o.SegmentBytes = faulty, slog.New(slog.NewTextHandler(log, nil)), 64<<10
		o.Disk = disk.Options{ReserveBytes: 1 << 20, CheckEvery: time.Millisecond, StallAfter: 50 * time.Millisecond}
		change(o)
	})
	return n, faulty, log
}

func TestAppendsAreRefusedBeforeTheDiskIsFull(t *testing.T) {
	t.Parallel()
	n, disk, log := limited(t, func(*cluster.Options) {})
	s := create(t, n, metadata.NewStream{Name: "s"})
	mustAppend(t, n, "s", 0, "before")
	refused := func() error { return appendTo(t, n, "s", 0, "x").Err }
	disk.Limit(1<<20 - 1)
	eventually(t, "touching the reserve", func() error {
		if err := refused(); !errors.Is(err, storage.ErrDiskFull) {
			return fmt.Errorf("got %w, want ErrDiskFull", err)
		}
		return nil
	})
	if err := n.Health(); !errors.Is(err, storage.ErrDiskFull) || !n.Disk().Refusing {
		t.Errorf("health is %v", err)
	}
	// What frees space, and who reads, goes on.
	if err := n.CommitOffsets(t.Context(), metadata.HoldingGroupPrefix+"sink", []metadata.GroupOffset{{Stream: s.ID, Offset: 1}}); err != nil {
		t.Errorf("a commit: %v", err)
	}
	p, err := n.Partition("s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := p.Read(cluster.ReadRequest{MaxBytes: 1 << 20}); err != nil || f.Bytes == 0 {
		t.Errorf("reading gave %d bytes, %v", f.Bytes, err)
	}
	disk.Limit(1<<20 + 100<<10) // above the reserve, but not yet by enough
	eventually(t, "seeing the room", func() error {
		if free := n.Disk().Free; free < 1<<20 {
			return fmt.Errorf("%d bytes are free", free)
		}
		return nil
	})
	if err := refused(); !errors.Is(err, storage.ErrDiskFull) {
		t.Errorf("just above the reserve: got %v, want ErrDiskFull", err)
	}
	disk.Limit(8 << 20)
	eventually(t, "going on", refused)
	if err := n.Health(); err != nil {
		t.Errorf("health is %v", err)
	}
	if log.count("nearly full: appends are refused") != 1 || log.count("has room again") == 0 {
		t.Errorf("the log says:\n%s", log.buf.String())
	}
}

// fillSegments appends until a journal has several sealed segments.
func fillSegments(t *testing.T, n *cluster.Node, stream string, records int) {
	t.Helper()
	for range records {
		mustAppend(t, n, stream, 0, strings.Repeat("x", 8<<10))
	}
}

// Old records go before their time only if that was asked for, and never those that a sink has not read: then it is said
// who keeps them.
func TestANearlyFullDiskDeletesEarlyOnlyWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		n, disk, log := limited(t, func(o *cluster.Options) { o.Disk.DeleteEarly, o.RetainEvery = early, 10*time.Millisecond })
		free := create(t, n, metadata.NewStream{Name: "free"})
		held := create(t, n, metadata.NewStream{Name: "held", Config: map[string]string{metadata.SettingRetentionBytes: "1"}})
		if err := n.CommitOffsets(t.Context(), metadata.HoldingGroupPrefix+"slow", []metadata.GroupOffset{{Stream: held.ID, Offset: 5}}); err != nil {
			t.Fatal(err)
		}
		fillSegments(t, n, "free", 100)
		fillSegments(t, n, "held", 40)
		disk.Limit(900 << 10)
		eventually(t, "saying who holds", func() error {
			if log.count("from the nearly full disk") == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		if early {
			eventually(t, "going on", func() error { return appendTo(t, n, "free", 0, "x").Err })
		} else if err := appendTo(t, n, "free", 0, "x").Err; !errors.Is(err, storage.ErrDiskFull) {
			t.Errorf("got %v, want ErrDiskFull", err)
		}
		if start := bounds(t, n, free.Name).Start; start > 0 != early {
			t.Errorf("early %v: the stream that nobody holds starts at %d", early, start)
		}
		if start := bounds(t, n, held.Name).Start; start > 5 {
			t.Errorf("early %v: the stream that is held at 5 starts at %d", early, start)
		}
	}
}

// A disk that does not answer is told while it does not, and when it does again.
func TestAStalledDiskIsTold(t *testing.T) {
	t.Parallel()
	n, disk, log := limited(t, func(*cluster.Options) {})
	s := create(t, n, metadata.NewStream{Name: "s"})
	mustAppend(t, n, "s", 0, "before")
	release := make(chan struct{})
	disk.Inject(vfs.Fault{Op: vfs.OpSync, Name: s.ID.String(), Stall: release})
	p, err := n.Partition("s", 0)
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan cluster.Appended, 1)
	if err := p.Append(context.Background(), storagetest.Batch("stuck"), func(a cluster.Appended) { answers <- a }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "telling", func() error {
		if s := n.Disk(); s.Stalled == nil || s.Stalls != 1 || s.Stalled.Op != "sync" || log.count("the disk does not answer") != 1 {
			return fmt.Errorf("status is %+v", s)
		}
		return nil
	})
	if err := n.Health(); err == nil || !strings.Contains(err.Error(), "not answered a sync") {
		t.Errorf("health is %v", err)
	}
	if f, err := p.Read(cluster.ReadRequest{MaxBytes: 1 << 20}); err != nil || f.Bytes == 0 {
		t.Errorf("reading meanwhile gave %d bytes, %v", f.Bytes, err)
	}
	select {
	case a := <-answers:
		t.Errorf("the append was answered by a disk that was not: %+v", a)
	default:
	}
	close(release)
	if a := <-answers; a.Err != nil || a.BaseOffset != 1 {
		t.Errorf("the append got %+v", a)
	}
	eventually(t, "telling that it is over", func() error {
		if n.Disk().Stalled != nil || log.count("the disk answers again") != 1 {
			return errors.New("not yet")
		}
		return n.Health()
	})
}
