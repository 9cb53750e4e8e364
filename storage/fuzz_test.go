package storage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// FuzzReceivedFrame gives a follower any bytes as a frame: it must refuse them or store exactly them, and never panic.
func FuzzReceivedFrame(f *testing.F) {
	l := openLog(f, f.TempDir(), storage.Options{})
	l.put(0, plain("a", 2), plain("b", 1))
	l.noop()
	for i := uint64(1); i <= 2; i++ {
		frame, err := l.Frame(i)
		must(f, err)
		f.Add(frame)
		f.Add(frame[:len(frame)-1])
		f.Add(append(bytes.Clone(frame), 0))
	}
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, frame []byte) {
		j, err := storage.Open("j", storage.Options{FS: vfs.NewMem()})
		must(t, err)
		defer j.Close()
		if len(frame) == 0 {
			return
		}
		if err := j.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Extensions: frame}); err != nil {
			return
		}
		got, err := j.Frame(1)
		must(t, err)
		clear(frame[52:56]) // the note is not handed on
		if !bytes.Equal(got, frame) {
			t.Fatalf("stored %x, got %x", frame, got)
		}
	})
}

// FuzzSegment opens a journal over any bytes as its only segment. It must open or refuse, whatever Verify and Dump say,
// and what it serves must be whole batches with good checksums.
func FuzzSegment(f *testing.F) {
	l := openLog(f, f.TempDir(), storage.Options{})
	l.put(0, plain("a", 2), plain("b", 1))
	l.put(1, plain("c", 1))
	b, err := os.ReadFile(lastSegment(f, l.dir))
	must(f, err)
	start, err := os.ReadFile(filepath.Join(l.dir, "start.0"))
	must(f, err)
	b = bytes.TrimRight(b, "\x00")
	f.Add(b, 0, byte(0))
	for _, at := range []int{0, 4, 12, 40, 64, 70, 100, 200, 300} {
		f.Add(b, at, byte(1))
		f.Add(b[:len(b)-at/2], at, byte(0x80))
	}
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte) {
		fsys := vfs.NewMem()
		must(t, fsys.MkdirAll("j", 0o755))
		data = bytes.Clone(data)
		if at >= 0 && at < len(data) {
			data[at] ^= flip
		}
		must(t, vfs.WriteFile(fsys, "j/00000000000000000000.seg", data, 0o644))
		must(t, vfs.WriteFile(fsys, "j/start.0", start, 0o644))
		if _, err := storage.VerifyFS(fsys, "j"); err != nil {
			t.Fatal(err)
		}
		must(t, storage.DumpFS(fsys, "j", &bytes.Buffer{}))
		l, err := tryOpen(t, "j", storage.Options{FS: fsys})
		if err != nil {
			return
		}
		for p := range uint32(2) {
			for rest := l.contents(p); len(rest) > 0; {
				h, err := storage.ParseHeader(rest)
				must(t, err)
				if err := (&storage.Batch{Data: rest[:h.Size()], Marker: h.Control()}).Check(); err != nil {
					// A batch may break rules of the format that its producer's check would have found, but it is whole.
					if isCorrupt(err) {
						t.Fatal(err)
					}
				}
				rest = rest[h.Size():]
			}
		}
		_ = l.Close()
	})
}

// FuzzBatch gives any bytes as a produced batch: they are refused, or come back as they were.
func FuzzBatch(f *testing.F) {
	for _, c := range codecs {
		f.Add(batch(batchSpec{times: []int64{1, 5, 3}, values: []string{"a", "b", "c"}, codec: c}))
	}
	f.Add(storage.ControlBatch(1, 2, 3, true, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 61 {
			data = recrc(bytes.Clone(data)) // else nothing passes the checksum
		}
		if _, err := storage.CheckBatch(data); err != nil {
			return
		}
		l := openLog(t, "j", storage.Options{FS: vfs.NewMem()})
		sent := bytes.Clone(data)
		l.put(0, data)
		if got := l.contents(0); !bytes.Equal(got[16:], sent[16:]) {
			t.Fatal("the batch came back changed")
		}
		for _, ms := range []int64{-1, 0, 3, 1 << 40} {
			if _, _, err := l.OffsetForTime(0, ms); err != nil {
				t.Fatalf("time %d: %v", ms, err)
			}
		}
		if _, _, err := l.MaxTimestamp(0); err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	})
}
