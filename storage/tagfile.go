package storage

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sort"

	"github.com/daybook-data/daybook/internal/vfs"
)

// A tag index file (.tix) says which tags each batch of a sealed segment holds. FORMAT.md draws it. Like every index
// file it is a cache: believed if its checksum holds and it names the segment's ends, else made anew.
const (
	tagSuffix      = ".tix"
	tagMagic       = 0x31544244 // "DBT1"
	tagVersion     = 1
	tagHeaderBytes = 48
)

// tagTable tells which batches of a segment hold a tag.
type tagTable struct {
	sets    [][]uint64
	batches []batchTags // by file offset
}

// tagFilter is a tagTable, and the tag that is looked for.
type tagFilter struct {
	table *tagTable
	hash  uint64
	cache map[uint32]bool // by set
}

// use looks into another segment's table from now on; nil is for one that is not known.
func (f *tagFilter) use(t *tagTable) {
	if t == nil {
		t = &tagTable{}
	}
	f.table, f.cache = t, map[uint32]bool{}
}

// wants says whether a reader of the tag gets the batch at a file offset: if it holds the tag, or if that is not known.
func (f *tagFilter) wants(rel uint32) bool {
	all := f.table.batches
	i := sort.Search(len(all), func(i int) bool { return all[i].rel >= rel })
	if i == len(all) || all[i].rel != rel || all[i].set == anyTag {
		return true
	}
	has, ok := f.cache[all[i].set]
	if !ok {
		_, has = slices.BinarySearch(f.table.sets[all[i].set], f.hash)
		f.cache[all[i].set] = has
	}
	return has
}

func encodeTags(seg *segment, t *tagTable) []byte {
	members := 0
	for _, s := range t.sets {
		members += len(s)
	}
	b := make([]byte, tagHeaderBytes, tagHeaderBytes+4*len(t.sets)+8*members+8*len(t.batches))
	for _, s := range t.sets {
		b = put32(b, uint32(len(s)))
	}
	for _, s := range t.sets {
		for _, hash := range s {
			b = put64(b, hash)
		}
	}
	for _, x := range t.batches {
		b = put32(put32(b, x.rel), x.set)
	}
	le := binary.LittleEndian
	putIndexHeader(b, tagMagic, tagVersion, seg)
	le.PutUint32(b[28:], uint32(len(t.sets)))
	le.PutUint32(b[32:], uint32(members))
	le.PutUint32(b[36:], uint32(len(t.batches)))
	le.PutUint32(b[44:], crc32.Update(crc32.Checksum(b[:44], castagnoli), castagnoli, b[tagHeaderBytes:]))
	return b
}

// putIndexHeader writes what ties an index file to its segment: 28 bytes.
func putIndexHeader(b []byte, magic, version uint32, seg *segment) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], magic)
	le.PutUint32(b[4:], version)
	le.PutUint64(b[8:], seg.base)
	le.PutUint64(b[16:], seg.end())
	le.PutUint32(b[24:], seg.lastCRC)
}

// fitsSegment says whether a header that putIndexHeader wrote is that of the segment.
func fitsSegment(b []byte, magic, version uint32, seg *segment) bool {
	le := binary.LittleEndian
	return le.Uint32(b) == magic && le.Uint32(b[4:]) == version && le.Uint64(b[8:]) == seg.base &&
		le.Uint64(b[16:]) == seg.end() && le.Uint32(b[24:]) == seg.lastCRC
}

// readTags reads the tag index of a sealed segment. The error is errNoIndex if it cannot be believed.
func readTags(fsys vfs.FS, seg *segment) (*tagTable, error) {
	b, err := vfs.ReadFile(fsys, indexPath(seg.path, tagSuffix))
	if err != nil || len(b) < tagHeaderBytes || !fitsSegment(b, tagMagic, tagVersion, seg) {
		return nil, errNoIndex
	}
	le := binary.LittleEndian
	sets, members, batches := int64(le.Uint32(b[28:])), int64(le.Uint32(b[32:])), int64(le.Uint32(b[36:]))
	if tagHeaderBytes+4*sets+8*members+8*batches != int64(len(b)) ||
		crc32.Update(crc32.Checksum(b[:44], castagnoli), castagnoli, b[tagHeaderBytes:]) != le.Uint32(b[44:]) {
		return nil, errNoIndex
	}
	d := &decoder{buf: b[tagHeaderBytes:]}
	sizes := make([]uint32, sets)
	var total int64
	for i := range sizes {
		sizes[i] = d.u32()
		total += int64(sizes[i])
	}
	if total != members || sets == 0 {
		return nil, errNoIndex
	}
	t := &tagTable{sets: make([][]uint64, sets), batches: make([]batchTags, batches)}
	for i, n := range sizes {
		t.sets[i] = make([]uint64, n)
		for k := range t.sets[i] {
			t.sets[i][k] = d.u64()
		}
	}
	for i := range t.batches {
		t.batches[i] = batchTags{rel: d.u32(), set: d.u32()}
		if int64(t.batches[i].set) >= sets {
			return nil, errNoIndex
		}
	}
	return t, d.err
}
