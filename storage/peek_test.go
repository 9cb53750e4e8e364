package storage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// The first frame of a group has no time of its own, as each member writes it; the segment's begins with the next.
func TestTheFirstSegmentIsFromItsFirstTime(t *testing.T) {
	t.Parallel()
	for _, records := range []int{1, 100} { // in an open segment, and in sealed ones too
		fs, now := vfs.NewMem(), newClock()
		l := openLog(t, "j", storage.Options{FS: fs, SegmentBytes: 4 << 10, Now: now.Now})
		must(t, l.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "1"}}})}))
		for i := range records {
			l.put(0, plain(fmt.Sprint(i, strings.Repeat("v", 100)), 1))
		}
		must(t, l.Close())
		p, err := storage.OpenPeek(fs, "j")
		must(t, err)
		segments, err := p.Segments()
		must(t, err)
		if len(segments) > 1 != (records > 1) {
			t.Fatalf("%d records are in %d segments", records, len(segments))
		}
		for i, s := range segments {
			if s.Frames > 0 && !s.First.Equal(now.Now()) {
				t.Errorf("segment %d of %d is from %v, want %v", i, len(segments), s.First, now.Now())
			}
		}
	}
}
