package storage

import (
	"encoding/binary"
	"slices"
)

// keyEntry says that a batch of a segment holds a key with this hash.
type keyEntry struct {
	hash uint64
	rel  uint32 // the batch's file offset
}

// batchTags says which tags a batch holds.
type batchTags struct {
	rel uint32
	set uint32 // in tagSets
}

// anyTag is the set of batches that every reader gets, whatever it asks for: transaction markers, without which a
// reader would take later records for aborted ones, and what cannot be unpacked.
const anyTag = 0

// maxTags is how many tags of a batch are told apart; one with more is every reader's.
const maxTags = 4096

// contents is what the records of a segment hold, as far as it was read: the matter of its key and tag index.
type contents struct {
	upTo    int64 // file offset: all frames before it are in
	keys    []keyEntry
	batches []batchTags
	sets    [][]uint64 // sorted hashes of tags; sets[anyTag] is empty
	ids     map[string]uint32

	scan   *scanner
	stop   <-chan struct{} // ends a read with ErrClosed
	walk   walker
	hashes []uint64 // used again
	tags   []uint64 // used again
}

func newContents(seg *segment, stop <-chan struct{}) *contents {
	return &contents{sets: [][]uint64{nil}, ids: map[string]uint32{}, scan: &scanner{file: seg.file}, stop: stop}
}

// read goes on up to the file offset end, where a frame ends. Damage ends it: an index must not be silent about records
// that it could not read.
func (c *contents) read(seg *segment, end int64) error {
	c.scan.size = end
	for c.upTo < end {
		select {
		case <-c.stop:
			return ErrClosed
		default:
		}
		head, err := c.scan.bytes(c.upTo, frameHeaderBytes)
		if err != nil {
			return err
		}
		h, ok := frameHeader{}, false
		if len(head) == frameHeaderBytes {
			h, ok = parseFrameHeader(head, seg.base+uint64(c.upTo))
		}
		if !ok {
			return seg.damage(c.upTo, end, "there is no frame header of this position")
		}
		frame, err := c.scan.bytes(c.upTo, int(h.length))
		if err != nil {
			return err
		}
		if len(frame) < int(h.length) || !h.checkDirectory(frame) {
			return seg.damage(c.upTo, c.upTo+int64(h.length), "header checksum does not match")
		}
		if reason := h.checkPayload(frame); reason != "" {
			return seg.damage(c.upTo, c.upTo+int64(h.length), reason)
		}
		c.addFrame(uint32(c.upTo), &h, frame)
		c.upTo += int64(h.length)
	}
	return nil
}

func (c *contents) addFrame(rel uint32, h *frameHeader, frame []byte) {
	at := frameHeaderBytes + h.dirBytes()
	for i := range h.dirBytes() / dirEntryBytes {
		d := entryAt(frame, i)
		c.addBatch(rel+uint32(at), frame[at:at+int(d.length)])
		at += int(d.length)
	}
}

// addBatch takes a checked batch in.
func (c *contents) addBatch(rel uint32, data []byte) {
	h := parseHeader(data)
	if h.Control() {
		c.batches = append(c.batches, batchTags{rel, anyTag})
		return
	}
	c.hashes, c.tags = c.hashes[:0], c.tags[:0]
	err := c.walk.each(h, data[batchHeaderBytes:], func(r *plainRecord) error {
		if r.key != nil {
			c.hashes = append(c.hashes, hashOf(r.key))
		}
		if tag := r.tag(); tag != nil {
			if hash := hashOf(tag); len(c.tags) == 0 || c.tags[len(c.tags)-1] != hash {
				c.tags = append(c.tags, hash)
			}
		}
		return nil
	})
	slices.Sort(c.hashes)
	for _, hash := range slices.Compact(c.hashes) {
		c.keys = append(c.keys, keyEntry{hash, rel})
	}
	set := uint32(anyTag)
	if err == nil { // else what was read before stays: it can be found by its key, as it is served
		slices.Sort(c.tags)
		set = c.setOf(slices.Compact(c.tags))
	}
	c.batches = append(c.batches, batchTags{rel, set})
}

// setOf returns the id of a set of tags.
func (c *contents) setOf(tags []uint64) uint32 {
	if len(tags) > maxTags {
		return anyTag
	}
	name := make([]byte, 0, 8*len(tags)+1)
	for _, t := range tags {
		name = binary.LittleEndian.AppendUint64(name, t)
	}
	id, ok := c.ids[string(name)]
	if !ok {
		id = uint32(len(c.sets))
		c.ids[string(name)] = id
		c.sets = append(c.sets, slices.Clone(tags))
	}
	return id
}

// batchesOf returns the file offsets of the batches that hold a key of this hash, in order.
func (c *contents) batchesOf(hash uint64) (rels []uint32) {
	for _, k := range c.keys {
		if k.hash == hash {
			rels = append(rels, k.rel)
		}
	}
	return rels
}

// tagTable returns the tags as far as they were read. What is reachable through it never changes.
func (c *contents) tagTable() *tagTable { return &tagTable{sets: c.sets, batches: c.batches} }
