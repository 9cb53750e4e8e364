package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/internal/cable"
	"github.com/daybook-data/daybook/storage"
)

// wireTo is a wire to an address that can be cut.
func wireTo(t *testing.T, address string) *cable.Cable {
	t.Helper()
	w := cable.New(t, address)
	w.Open()
	t.Cleanup(w.Close)
	return w
}

// An upstream that says nothing any more, and one that is gone, are left for another; the given ones before those that
// were not.
func TestAnObserverLeavesWhoIsSilentOrGone(t *testing.T) {
	t.Parallel()
	c, _ := replicated(t, 3, "s")
	first, second := wireTo(t, c.Address(0)), wireTo(t, c.Address(1))
	n, _ := observe(t, []string{first.Open(), second.Open()})
	acked := fill(c, "s", "a", 5)
	wantCopy(t, c, n, "s", acked)
	from := func() (used string) {
		s := n.Observer().Status()
		for _, u := range s.Upstreams {
			if u.Journals > 0 {
				used = u.Address
			}
		}
		return used
	}
	for round, silence := range []func(w *cable.Cable){
		func(w *cable.Cable) { w.Swallow(true, true) },
		func(w *cable.Cable) { w.Close() },
	} {
		c.Until("a given upstream to be used", func() bool { used := from(); return used == first.Open() || used == second.Open() })
		silence(first)
		for offset, value := range fill(c, "s", fmt.Sprint("round ", round, " "), 5) {
			acked[offset] = value
		}
		wantCopy(t, c, n, "s", acked)
		c.Until("the other given upstream to be used", func() bool { return from() == second.Open() })
		first.Swallow(false, false)
		first.Open()
	}
	first.Close()
	second.Swallow(true, true)
	for offset, value := range fill(c, "s", "last ", 5) {
		acked[offset] = value
	}
	wantCopy(t, c, n, "s", acked) // from a node that was not given
}

// What rots in a copy is not served, and comes again from the upstream.
func TestARottenCopyIsMended(t *testing.T) {
	t.Parallel()
	c, s := replicated(t, 1, "s")
	dir := t.TempDir()
	n, _ := observe(t, addresses(c, 1), in(dir), func(o *cluster.Options) { o.SegmentBytes = 4 << 10 })
	acked := map[int64]string{}
	for range 4 { // what comes at once goes into one segment
		for offset, value := range fill(c, "s", strings.Repeat("some value ", 100), 5) {
			acked[offset] = value
		}
		wantCopy(t, c, n, "s", acked)
	}
	segments, err := filepath.Glob(filepath.Join(datadir.JournalDirs(dir, s)[0], "*.seg"))
	must(t, err)
	if len(segments) < 3 {
		t.Fatalf("there are %d segments", len(segments))
	}
	f, err := os.OpenFile(segments[1], os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	for at := info.Size() / 4; at < info.Size()/2; at++ {
		_, err = f.WriteAt([]byte{0xa5}, at)
		must(t, err)
	}
	wantCopy(t, c, n, "s", acked) // reads all of it until it is right
	must(t, n.Close())
	j, err := storage.Open(datadir.JournalDirs(dir, s)[0], storage.Options{})
	must(t, err)
	defer j.Close()
	for i := uint64(1); i <= j.End().Index; i++ {
		_, err := j.Frame(i)
		must(t, err)
	}
}
