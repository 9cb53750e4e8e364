package storage_test

import (
	"fmt"
	"testing"

	"github.com/daybook-data/daybook/storage"
)

// BenchmarkFind looks a key up that is in one of 160 sealed segments, and one that is in none.
func BenchmarkFind(b *testing.B) {
	l := openLog(b, b.TempDir(), storage.Options{Mode: storage.Replicated, SegmentBytes: 1 << 20})
	l.KeepIndexes(storage.Indexes{Keys: true})
	n := 0
	for len(files(b, l.dir, ".seg")) <= 160 {
		records := make([]keyed, 100)
		for i := range records {
			records[i] = keyed{key: fmt.Sprint("key-", n), value: "some value"}
			n++
		}
		must(b, l.store(&storage.Batch{Data: keyedBatch(storage.None, records...)}))
	}
	l.Commit(l.last())
	eventually(b, "the index", func() bool { return len(files(b, l.dir, ".kix")) == 160 })
	for name, key := range map[string]string{"oldest": "key-7", "newest": fmt.Sprint("key-", n-1), "none": "key"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				for _, err := range l.Find([]byte(key), true) {
					must(b, err)
				}
			}
		})
	}
	b.Logf("%d records", n)
}
