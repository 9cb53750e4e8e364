package storage

import "github.com/daybook-data/daybook/internal/vfs"

// coldReads reads a segment for nobody who waits, and leaves no more of it in memory than was there before.
type coldReads struct {
	seg  *segment
	view *view // nil: nothing is known of what is in memory
	made bool  // the view was made for this
	vec  [surveyBytes/vfs.PageBytes + 1]byte
}

func (j *Journal) coldReads(seg *segment) *coldReads {
	seg.viewMu.Lock()
	made := seg.view == nil
	seg.viewMu.Unlock()
	return &coldReads{seg: seg, view: j.viewOf(seg, seg.size), made: made}
}

func (c *coldReads) end() {
	if c.view == nil {
		return
	}
	c.view.release()
	if c.made {
		c.seg.dropView()
	}
}

// read fills buf from a file offset.
func (c *coldReads) read(buf []byte, off int64) error {
	cold := c.isCold(off, int64(len(buf)))
	err := readAll(c.seg.file, buf, off)
	if cold {
		c.view.mapping.Forget(off&^(vfs.PageBytes-1), int64(len(buf))+off&(vfs.PageBytes-1))
	}
	return err
}

// isCold says whether nothing of a range is in memory.
func (c *coldReads) isCold(off, n int64) bool {
	if c.view == nil {
		return false
	}
	off, n = off&^(vfs.PageBytes-1), n+off&(vfs.PageBytes-1)
	pages := int((n + vfs.PageBytes - 1) / vfs.PageBytes)
	if pages > len(c.vec) {
		return false // a single frame that is larger; the cache evicts it when it likes
	}
	c.view.mapping.Resident(off, n, c.vec[:])
	for _, v := range c.vec[1:max(1, pages-1)] { // the pages at the ends may be those of neighbours
		if v&1 != 0 {
			return false
		}
	}
	return true
}
