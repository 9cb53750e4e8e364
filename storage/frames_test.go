package storage_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// sentLogs are the entries from first to last as raft would give them to a transport.
func sentLogs(t *testing.T, j *storage.Journal, first, last uint64) []*raft.Log {
	t.Helper()
	var logs []*raft.Log
	for i := first; i <= last; i++ {
		l := &raft.Log{}
		must(t, j.GetLog(i, l))
		logs = append(logs, l)
	}
	return logs
}

// What one replica reads to send is what another stores, byte for byte, over the ends of segments, whether the disk's
// pages can be looked at in memory or not.
func TestFramesTravelUnchanged(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]storage.Options{
		"mapped": {SegmentBytes: 8 << 10},
		"copied": {SegmentBytes: 8 << 10, FS: vfs.NewMem()},
	} {
		l := openLog(t, t.TempDir(), o)
		for i := range 40 {
			l.put(uint32(i%3), plain("some value that takes room", 1+i%5))
		}
		l.put(0, plain(strings.Repeat("large", 1<<20), 1)) // longer than the pages that are asked for at once
		l.noop()
		last, err := l.LastIndex()
		must(t, err)
		other, err := storage.Open(t.TempDir(), storage.Options{SegmentBytes: 16 << 10})
		must(t, err)
		defer other.Close()
		for _, room := range []int{1, 3000, math.MaxInt} {
			logs := sentLogs(t, l.Journal, 1, last)
			for at := 0; at < len(logs); {
				f, err := l.Frames(logs[at:], room)
				must(t, err)
				if f.Count == 0 || f.Count > 1 && f.Bytes > room {
					t.Fatalf("%s: got %d entries of %d bytes, want at most %d bytes and an entry", name, f.Count, f.Bytes, room)
				}
				buf := bytes.Join(f.Pieces, nil)
				f.Release()
				got, err := other.Received(buf, logs[at].Index)
				must(t, err)
				if len(got) != f.Count || len(buf) != f.Bytes {
					t.Fatalf("%s: %d entries of %d bytes were split into %d of %d", name, f.Count, f.Bytes, len(got), len(buf))
				}
				if room == 3000 {
					must(t, other.StoreLogs(got))
				}
				at += f.Count
			}
		}
		for i := uint64(1); i <= last; i++ {
			want, err := l.Frame(i)
			must(t, err)
			got, err := other.Frame(i)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: entry %d differs", name, i)
			}
		}
	}
}

// Only what the log has is sent: not an entry beyond its end, nor one that was cut and has another in its place.
func TestFramesOfEntriesThatAreNotThereAreRefused(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(0, plain("a", 1))
	last, _ := l.LastIndex()
	if _, err := l.Frames([]*raft.Log{{Index: last + 1, Term: 1}}, 1); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("beyond the end: got %v", err)
	}
	logs := sentLogs(t, l.Journal, last, last)
	logs[0].Term++
	if _, err := l.Frames(logs, 1); err == nil {
		t.Error("of another term: got no error")
	}
}

// A frame that was damaged on its way is refused before anything is done with it, and the journal goes on.
func TestADamagedFrameDoesNotEndTheJournal(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(0, plain("first", 2))
	l.put(0, plain("second", 2))
	last, _ := l.LastIndex()
	other, err := storage.Open(t.TempDir(), storage.Options{})
	must(t, err)
	defer other.Close()
	received := func(i uint64) *raft.Log {
		frame, err := l.Frame(i)
		must(t, err)
		logs, err := other.Received(frame, i)
		must(t, err)
		return logs[0]
	}
	good := received(1)
	for at := range good.Extensions {
		bad := *good
		bad.Extensions = bytes.Clone(good.Extensions)
		bad.Extensions[at] ^= 0x10
		if err := other.StoreLogs([]*raft.Log{&bad}); !errors.Is(err, storage.ErrDamagedFrame) {
			t.Fatalf("byte %d of the frame changed: got %v", at, err)
		}
		if other.Err() != nil {
			t.Fatalf("byte %d of the frame changed: the journal ended with %v", at, other.Err())
		}
	}
	for i := uint64(1); i <= last; i++ {
		must(t, other.StoreLog(received(i)))
	}
}

// A log of commands takes the commands out of the frames of another one, wherever that one has them.
func TestACommandLogTakesCommandsFromAnyPosition(t *testing.T) {
	t.Parallel()
	open := func() *storage.Journal {
		j, err := storage.Open("j", storage.Options{FS: vfs.NewMem(), Commands: true})
		must(t, err)
		return j
	}
	one, other := open(), open()
	defer one.Close()
	defer other.Close()
	for i := uint64(1); i <= 9; i++ {
		must(t, one.StoreLog(&raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: bytes.Repeat([]byte{byte(i)}, int(i)*10)}))
	}
	f, err := one.Frames(sentLogs(t, one, 5, 9), math.MaxInt)
	must(t, err)
	buf := bytes.Join(f.Pieces, nil)
	f.Release()
	got, err := other.Received(buf, 5)
	must(t, err)
	must(t, other.StoreLogs(got))
	for i := uint64(5); i <= 9; i++ {
		var l raft.Log
		must(t, other.GetLog(i, &l))
		if !bytes.Equal(l.Data, bytes.Repeat([]byte{byte(i)}, int(i)*10)) {
			t.Errorf("command %d is %v", i, l.Data)
		}
	}
	for at := range buf {
		buf[at] ^= 1
		if _, err := other.Received(buf, 5); !errors.Is(err, storage.ErrDamagedFrame) {
			t.Fatalf("byte %d changed: got %v", at, err)
		}
		buf[at] ^= 1
	}
}

func FuzzReceivedFrames(f *testing.F) {
	j, err := storage.Open(f.TempDir(), storage.Options{})
	must(f, err)
	defer j.Close()
	must(f, j.StoreLogs([]*raft.Log{{Index: 1, Term: 1, Type: raft.LogNoop}, {Index: 2, Term: 1, Type: raft.LogConfiguration, Data: []byte("members")}}))
	var seed []byte
	for i := uint64(1); i <= 2; i++ {
		frame, err := j.Frame(i)
		must(f, err)
		seed = append(seed, frame...)
	}
	f.Add(seed, uint64(1))
	f.Add(seed[:len(seed)-1], uint64(1))
	f.Add(bytes.Repeat([]byte{0xff}, 200), uint64(0))
	f.Fuzz(func(t *testing.T, buf []byte, first uint64) {
		logs, err := j.Received(buf, first)
		if err != nil {
			return
		}
		var all []byte
		for i, l := range logs {
			if l.Index != first+uint64(i) {
				t.Fatalf("entry %d has index %d", first+uint64(i), l.Index)
			}
			all = append(all, l.Extensions...)
		}
		if !bytes.Equal(all, buf) {
			t.Fatal("the frames are not the bytes")
		}
	})
}
