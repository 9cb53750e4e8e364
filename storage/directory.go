package storage

// directory is the header and directory of a frame of batches, read and checked.
type directory struct {
	header frameHeader
	head   []byte // of the frame at header.position; empty: none was read
}

// read reads the directory of the frame that holds the batch at the file offset rel, if it is not there already.
func (d *directory) read(seg *segment, e entry, rel uint32) error {
	if len(d.head) > 0 && d.header.position == seg.base+uint64(e.rel) {
		return nil
	}
	head := make([]byte, frameHeaderBytes)
	if err := seg.read(head, int64(e.rel)); err != nil {
		return err
	}
	h, ok := parseFrameHeader(head, seg.base+uint64(e.rel))
	if !ok || h.typ != frameBatches {
		return seg.damage(int64(e.rel), int64(rel), "frame header is damaged")
	}
	head = append(head, make([]byte, h.dirBytes())...)
	if err := seg.read(head[frameHeaderBytes:], int64(e.rel)+frameHeaderBytes); err != nil {
		return err
	}
	if !h.checkDirectory(head) {
		return seg.damage(int64(e.rel), int64(rel), "header checksum does not match")
	}
	d.header, d.head = h, head
	return nil
}

// find returns the entry of the batch at a file offset.
func (d *directory) find(seg *segment, rel uint32) (dirEntry, bool) {
	at := uint32(d.header.position-seg.base) + uint32(len(d.head))
	for i := range int(d.header.count) {
		e := entryAt(d.head, i)
		if at == rel {
			return e, true
		}
		at += e.length
	}
	return dirEntry{}, false
}
