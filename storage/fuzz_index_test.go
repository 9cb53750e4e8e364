package storage_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// FuzzIndexFiles opens a journal of which one index file is any bytes: contents, lookups and tags stay what they were.
func FuzzIndexFiles(f *testing.F) {
	o := storage.Options{SegmentBytes: 4 << 10}
	l := openLog(f, f.TempDir(), o)
	l.KeepIndexes(storage.Indexes{Keys: true, Tags: true})
	for i := range 40 {
		l.put(uint32(i%2), keyedBatch(storage.LZ4,
			keyed{key: fmt.Sprint("k", i%5), value: fmt.Sprintf("%0200d", i), headers: [][2]string{{storage.TagHeader, fmt.Sprint("t", i%3)}}}))
	}
	eventually(f, "the indexes", func() bool {
		return len(files(f, l.dir, ".tix")) > 0 && len(files(f, l.dir, ".kix")) == len(files(f, l.dir, ".seg"))-1
	})
	want := found(f, l, "k2", false)
	body := l.contents(1)
	tagged := wholeTag(f, l, "t1")
	must(f, l.Close())
	disk := map[string][]byte{}
	var indexes []string
	for _, suffix := range []string{".seg", ".idx", ".kix", ".tix", ".0", ".1", "mark"} {
		for _, name := range files(f, l.dir, suffix) {
			b, err := os.ReadFile(filepath.Join(l.dir, name))
			must(f, err)
			disk[name] = b
			if slices.Contains([]string{".idx", ".kix", ".tix"}, suffix) {
				indexes = append(indexes, name)
			}
		}
	}
	for i, name := range indexes {
		for _, at := range []int{0, 8, 28, 32, 44, 60, 100, len(disk[name]) - 1} {
			f.Add(i, disk[name], at, byte(1))
			f.Add(i, disk[name][:min(at, len(disk[name]))], 0, byte(0))
		}
	}
	f.Fuzz(func(t *testing.T, which int, data []byte, at int, flip byte) {
		fsys := vfs.NewMem()
		must(t, fsys.MkdirAll("j", 0o755))
		for name, b := range disk {
			must(t, vfs.WriteFile(fsys, "j/"+name, b, 0o644))
		}
		if data = bytes.Clone(data); at >= 0 && at < len(data) {
			data[at] ^= flip
		}
		must(t, vfs.WriteFile(fsys, "j/"+indexes[uint(which)%uint(len(indexes))], data, 0o644))
		o := o
		o.FS = fsys
		l := openLog(t, "j", o)
		defer l.Close()
		l.KeepIndexes(storage.Indexes{Keys: true, Tags: true})
		if got := l.contents(1); !bytes.Equal(got, body) {
			t.Fatalf("partition 1 holds %d bytes, want %d", len(got), len(body))
		}
		for range 2 { // by the file, and by the one that was made anew
			if diff := cmp.Diff(want, found(t, l, "k2", false)); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
		}
		got := wholeTag(t, l, "t1")
		for _, o := range tagged {
			if !slices.Contains(got, o) {
				t.Fatalf("batch %d of the tag is missing in %v", o, got)
			}
		}
	})
}

// wholeTag returns the offsets of partition 0's batches that a reader of the tag gets.
func wholeTag(t testing.TB, l *log, tag string) []int64 {
	t.Helper()
	x := &tagLog{log: l}
	got, _ := x.read(t, tag)
	return got
}
