package storage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// What was written stays in memory only as far as the budget reaches, in both modes, and is read all the same.
func TestWhatIsWrittenKeepsToTheBudget(t *testing.T) {
	t.Parallel()
	for _, mode := range []storage.Mode{storage.Durable, storage.Replicated} {
		const budget = 8 << 20
		cache := storage.NewCache(budget)
		l := openLog(t, t.TempDir(), storage.Options{Mode: mode, SegmentBytes: 16<<20 + 4<<10, Cache: cache, Spares: -1})
		var want []byte
		for range 8 {
			want = append(want, fill(t, l, 1, 16, 600_000)[0]...)
			must(t, l.Flush())
			if s := cache.Stats(); s.Bytes > budget {
				t.Errorf("%d bytes are charged to a budget of %d", s.Bytes, budget)
			}
		}
		if s := cache.Stats(); s.Bytes == 0 {
			t.Error("nothing of what was written is charged")
		}
		// Pages that the kernel is about to move from one of its lists to another are spared now and then.
		if kept := residentBytes(t, l.dir); kept > len(want)/2 {
			t.Errorf("of %d bytes written %d are in memory, with a budget of %d", len(want), kept, budget)
		}
		if got := l.contents(0); !bytes.Equal(got, want) {
			t.Errorf("%d bytes are read that are not the %d written", len(got), len(want))
		}
	}
}

// A write into a removed segment's file covers its last page, so that the page's old bytes need not be read for it.
func TestAWriteOverAnOldFileCoversWholePages(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{SegmentBytes: 256 << 10, Retention: storage.Retention{Bytes: 512 << 10}})
	over := 0 // writes with bytes of an earlier life behind them
	for range 60 {
		fill(t, l, 1, 1, 50_000)
		_, err := l.Retain()
		must(t, err)
		segs := files(t, l.dir, ".seg")
		last := segs[len(segs)-1]
		base, err := strconv.ParseUint(strings.TrimSuffix(last, ".seg"), 10, 64)
		must(t, err)
		data, err := os.ReadFile(filepath.Join(l.dir, last))
		must(t, err)
		end := int(l.DurableEnd() - base)
		page := (end + vfs.PageBytes - 1) &^ (vfs.PageBytes - 1)
		if bytes.Count(data[end:page], []byte{0}) != page-end {
			t.Fatalf("behind the log's end at %d the page holds %x", end, data[end:page])
		}
		if bytes.Count(data[page:], []byte{0}) < len(data)-page {
			over++
		}
	}
	if over == 0 {
		t.Error("no file was used again; the test shows nothing")
	}
}

// residentBytes is how much of the journal's segments is in memory.
func residentBytes(t *testing.T, dir string) int {
	t.Helper()
	total := 0
	for _, name := range files(t, dir, ".seg") {
		f, err := vfs.OS{}.OpenFile(filepath.Join(dir, name), os.O_RDONLY, 0)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		m, err := f.(vfs.Mapper).Map(size)
		must(t, err)
		vec := make([]byte, (size+vfs.PageBytes-1)/vfs.PageBytes)
		m.Resident(0, size, vec)
		for _, v := range vec {
			total += int(v&1) * vfs.PageBytes
		}
		must(t, m.Close())
		must(t, f.Close())
	}
	return total
}
