package storage_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// fuzzed is a journal of which one file is replaced by any bytes.
type fuzzed struct {
	disk *vfs.Mem
	o    storage.Options
	want []byte // of partition 0
}

func newFuzzed(f *testing.F) *fuzzed {
	s := newScript(f)
	must(f, s.run())
	z := &fuzzed{disk: s.mem.Crash(s.mem.Doubts()), o: s.o}
	z.want, _ = s.served(z.disk, nil)
	z.disk = z.disk.Crash(nil)
	return z
}

// file returns the first file whose name ends so, and its contents.
func (z *fuzzed) file(f *testing.F, suffix string) (name string, data []byte) {
	names, err := z.disk.ReadDir("j")
	must(f, err)
	for _, n := range names {
		if name = "j/" + n; len(n) >= len(suffix) && n[len(n)-len(suffix):] == suffix {
			data, err = vfs.ReadFile(z.disk, name)
			must(f, err)
			return name, data
		}
	}
	f.Fatalf("no file %s", suffix)
	return "", nil
}

// with opens the journal with a file replaced. It must open or refuse, and serve nothing that was not written; what
// Verify and Dump say does not matter, but they must say it.
func (z *fuzzed) with(t *testing.T, name string, data []byte) (served []byte, err error) {
	disk := z.disk.Crash(nil)
	must(t, vfs.WriteFile(disk, name, data, 0o644))
	_, _ = storage.VerifyFS(disk, "j")
	_ = storage.DumpFS(disk, "j", &bytes.Buffer{})
	o := z.o
	o.FS = disk
	l, err := tryOpen(t, "j", o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	served, err = l.tryContents(0)
	_, _, _ = l.OffsetForTime(0, 500)
	return served, err
}

// mutate flips a byte and cuts the end off.
func mutate(data []byte, at int, flip byte, drop int) []byte {
	data = bytes.Clone(data)
	if len(data) > 0 && at >= 0 {
		data[at%len(data)] ^= flip
	}
	return data[:len(data)-min(max(drop, 0), len(data))]
}

// FuzzIndexFile damages an index file: it is a cache, so the answers stay what they are.
func FuzzIndexFile(f *testing.F) {
	z := newFuzzed(f)
	name, good := z.file(f, ".idx")
	f.Add([]byte{}, 0, byte(0), 0)
	f.Add(good, 0, byte(0), 0)
	for at := range good {
		if at%7 == 0 {
			f.Add(good, at, byte(1), 0)
		}
	}
	f.Add(good, 0, byte(0), 9)
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte, drop int) {
		data = mutate(data, at, flip, drop)
		got, err := z.with(t, name, data)
		if err != nil || !bytes.Equal(got, z.want[:len(z.want)-1]) {
			t.Fatalf("other answers: %d bytes, %v; want %d", len(got), err, len(z.want)-1)
		}
	})
}

// FuzzStartFile replaces both copies of the start file, checksums made right: whatever they say, the journal opens or
// refuses.
func FuzzStartFile(f *testing.F) {
	z := newFuzzed(f)
	_, good := z.file(f, "start.0")
	must(f, z.disk.Remove("j/start.1"))
	f.Add(good, 0, byte(0), true)
	for at := range 200 {
		f.Add(good[:400], at, byte(1), at%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte, right bool) {
		data = mutate(data, at, flip, 0)
		le := binary.LittleEndian
		if n := 32; right && len(data) >= n {
			size := min(int(le.Uint32(data[16:])), len(data)-n)
			le.PutUint32(data[16:], uint32(size))
			le.PutUint32(data[20:], crc32.Checksum(data[4:20], castagnoli))
			le.PutUint32(data[24:], crc32.Checksum(data[n:n+size], castagnoli))
		}
		if got, err := z.with(t, "j/start.0", data); err == nil && !bytes.HasSuffix(z.want[:len(z.want)-1], got) {
			t.Fatalf("%d bytes are served that were not written", len(got))
		}
	})
}

// FuzzMark replaces the mark: one that is not right is none, and one that claims more than there is stops the start.
func FuzzMark(f *testing.F) {
	z := newFuzzed(f)
	_, good := z.file(f, "mark")
	f.Add([]byte{}, 0, byte(0), false)
	f.Add(good, 0, byte(0), true)
	for at := range good {
		f.Add(good, at, byte(1), at%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte, right bool) {
		data = mutate(data, at, flip, 0)
		if right && len(data) >= 32 {
			binary.LittleEndian.PutUint32(data[28:], crc32.Checksum(data[:28], castagnoli))
		}
		got, err := z.with(t, "j/mark", data)
		if err != nil && !isDamage(err) {
			t.Fatal(err)
		}
		if err == nil && !bytes.Equal(got, z.want[:len(z.want)-1]) {
			t.Fatalf("other answers: %d bytes, want %d", len(got), len(z.want)-1)
		}
	})
}
