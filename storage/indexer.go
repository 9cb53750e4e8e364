package storage

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Indexes says which indexes over its records a journal keeps beside those that it needs itself.
type Indexes struct {
	Keys bool // Find answers by key
	Tags bool // ReadTagged skips batches without the tag
}

// indexer makes the indexes over records, behind the write path: of sealed segments as files, of the open one in
// memory. Both are caches: who needs one that is not there makes it.
//
// Locks: segment.indexMu (one makes a sealed segment's indexes), then indexer.mu; both are held while a segment is
// read, and never by the write path.
type indexer struct {
	j          *Journal
	keys, tags atomic.Bool
	kick       chan struct{}
	done       sync.WaitGroup
	start      sync.Once

	mu   sync.Mutex // guards both
	seg  *segment   // the one being written to, as far as it was seen
	open *contents  // of seg
}

func newIndexer(j *Journal) *indexer { return &indexer{j: j, kick: make(chan struct{}, 1)} }

// KeepIndexes says which indexes the journal keeps from now on. Files that are there stay until their segments go. The
// tag index, once kept, is kept until the journal closes: a reader may have asked for it.
func (j *Journal) KeepIndexes(x Indexes) {
	if x.Keys == j.indexer.keys.Load() && (!x.Tags || j.indexer.tags.Load()) {
		return
	}
	j.indexer.keys.Store(x.Keys)
	if x.Tags {
		j.indexer.tags.Store(true)
	}
	j.indexer.start.Do(func() { j.indexer.done.Go(j.indexer.run) })
	j.indexer.wake()
}

// wake tells the indexer that there is more.
func (x *indexer) wake() {
	if !x.keys.Load() && !x.tags.Load() {
		return
	}
	select {
	case x.kick <- struct{}{}:
	default: // it is told already
	}
}

// run makes what is missing, until the journal closes.
func (x *indexer) run() {
	told := map[uint64]bool{} // by segment
	for {
		select {
		case <-x.j.closing:
			return
		case <-x.kick:
			x.pass(told)
		}
	}
}

// pass makes what is missing now, from the newest segment to the oldest, but for segments that are in told: it adds those
// that cannot be indexed.
func (x *indexer) pass(told map[uint64]bool) {
	segs, release := x.j.segments()
	defer release()
	for i := len(segs) - 1; i >= 0 && !x.j.isClosing(); i-- {
		if told[segs[i].base] { // lookups that need it try again, and say why they fail
			continue
		}
		if err := x.tend(segs[i], i == len(segs)-1); err != nil && !errors.Is(err, ErrClosed) {
			told[segs[i].base] = true
			x.j.o.Logger.Error("a segment cannot be indexed; lookups that need it fail", "file", segs[i].path, "error", err)
		}
	}
}

// tend brings a segment's indexes up to date.
func (x *indexer) tend(seg *segment, last bool) error {
	if !last {
		return x.ensure(seg)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	_, err := x.follow(seg)
	return err
}

// segments returns the log's segments in order, each with a reference until release is called.
func (j *Journal) segments() (segs []*segment, release func()) {
	j.mu.RLock()
	segs = append(segs, j.index.segs...)
	for _, s := range segs {
		s.acquire()
	}
	j.mu.RUnlock()
	return segs, func() {
		for _, s := range segs {
			s.release()
		}
	}
}

// follow reads on in a segment that is not known to be sealed, up to what is committed. The caller holds mu.
func (x *indexer) follow(seg *segment) (*contents, error) {
	if x.seg != seg {
		x.seg, x.open = seg, newContents(seg, x.j.closing)
	}
	visible := x.j.visible()
	x.j.mu.RLock()
	end := min(visible, seg.end())
	x.j.mu.RUnlock()
	if end <= seg.base {
		return x.open, nil
	}
	return x.open, x.open.read(seg, int64(end-seg.base))
}

// ensure makes the index files of a sealed segment that are wanted and not there, and loads what is kept in memory.
func (x *indexer) ensure(seg *segment) error {
	seg.indexMu.Lock()
	defer seg.indexMu.Unlock()
	keys, tags := x.keys.Load(), x.tags.Load()
	if keys && seg.keys.Load() == nil {
		if k, err := readKeys(x.j.fsys, seg); err == nil {
			seg.keys.Store(k)
		}
	}
	if tags && !seg.tagged {
		_, err := readTags(x.j.fsys, seg)
		seg.tagged = err == nil
	}
	if (!keys || seg.keys.Load() != nil) && (!tags || seg.tagged) {
		return nil
	}
	if seg.end() > x.j.visible() {
		return nil // sealed, but not committed to the end: there will be another kick
	}
	c, err := x.contentsOf(seg)
	if err != nil {
		return err
	}
	return x.write(seg, c, keys, tags)
}

// contentsOf reads a sealed segment to its end, going on where the indexer was when it was open.
func (x *indexer) contentsOf(seg *segment) (*contents, error) {
	x.mu.Lock()
	c := newContents(seg, x.j.closing)
	if x.seg == seg {
		c, x.seg, x.open = x.open, nil, nil
	}
	x.mu.Unlock()
	return c, c.read(seg, seg.size)
}

// write writes the files. One that cannot be written is a nuisance, not an error: its matter is found by reading.
func (x *indexer) write(seg *segment, c *contents, keys, tags bool) error {
	var errs []error
	if tags {
		errs = append(errs, writeIndexFile(x.j.fsys, indexPath(seg.path, tagSuffix), encodeTags(seg, c.tagTable())))
		seg.tagTable.Store(c.tagTable())
		x.j.cache.add(seg)
		seg.tagged = errs[0] == nil
	}
	if keys {
		errs = append(errs, writeIndexFile(x.j.fsys, indexPath(seg.path, keySuffix), encodeKeys(seg, c.keys)))
		k, err := readKeys(x.j.fsys, seg)
		errs = append(errs, err)
		seg.keys.Store(k)
	}
	return errors.Join(errs...)
}

// writeIndexFile makes the whole file appear at once, for readers of this process; a crash may leave any part of it,
// which its checksums tell.
func writeIndexFile(fsys vfs.FS, path string, data []byte) error {
	tmp := path + ".tmp"
	if err := writeCache(fsys, tmp, data); err != nil {
		_ = fsys.Remove(tmp) // leaves nothing behind on a full disk; the error that counts is the first
		return err
	}
	return fsys.Rename(tmp, path)
}

// removeIndexes removes the index files of a segment that goes. What stays is removed at the next start.
func (j *Journal) removeIndexes(segPath string) {
	for _, suffix := range indexSuffixes {
		_ = j.fsys.Remove(indexPath(segPath, suffix)) // its checksum ties it to frames that are gone
	}
}

// indexSuffixes are those of all index files.
var indexSuffixes = [...]string{idxSuffix, keySuffix, tagSuffix}
