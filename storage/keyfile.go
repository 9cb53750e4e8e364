package storage

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/daybook-data/daybook/internal/vfs"
)

// A key index file (.kix) says which batches of a sealed segment hold a key. FORMAT.md draws it: a directory that is
// kept in memory, then blocks of sorted hashes, each with a checksum of its own, of which a lookup reads one as a rule.
const (
	keySuffix      = ".kix"
	keyMagic       = 0x314b4244 // "DBK1"
	keyVersion     = 1
	keyHeaderBytes = 48
	keyBlockBytes  = 4096
	keyEntryBytes  = 12
	keysPerBlock   = (keyBlockBytes - 4) / keyEntryBytes
)

// keyFile is the directory of a key index file: the lowest hash of each block.
type keyFile struct {
	path   string
	count  int64
	lowest []uint64
}

// indexPath is where the index of a segment with this suffix lies.
func indexPath(segPath, suffix string) string { return strings.TrimSuffix(segPath, segSuffix) + suffix }

// encodeKeys lays a key index out, and sorts the keys for that.
func encodeKeys(seg *segment, keys []keyEntry) []byte {
	slices.SortFunc(keys, func(a, b keyEntry) int {
		switch {
		case a.hash != b.hash && a.hash < b.hash || a.hash == b.hash && a.rel < b.rel:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	blocks := (len(keys) + keysPerBlock - 1) / keysPerBlock
	b := make([]byte, keyHeaderBytes, keyHeaderBytes+blocks*(8+keyBlockBytes))
	for i := range blocks {
		b = put64(b, keys[i*keysPerBlock].hash)
	}
	head := len(b)
	for block := range slices.Chunk(keys, keysPerBlock) {
		start := len(b)
		for _, k := range block {
			b = put32(put64(b, k.hash), k.rel)
		}
		b = append(b, make([]byte, start+keyBlockBytes-4-len(b))...)
		b = put32(b, crc32.Checksum(b[start:], castagnoli))
	}
	le := binary.LittleEndian
	putIndexHeader(b, keyMagic, keyVersion, seg)
	le.PutUint32(b[28:], uint32(blocks))
	le.PutUint64(b[32:], uint64(len(keys)))
	le.PutUint32(b[44:], crc32.Update(crc32.Checksum(b[:44], castagnoli), castagnoli, b[keyHeaderBytes:head]))
	return b
}

// readKeys reads the directory of a sealed segment's key index. The error is errNoIndex if it cannot be believed.
func readKeys(fsys vfs.FS, seg *segment) (*keyFile, error) {
	path := indexPath(seg.path, keySuffix)
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, errNoIndex
	}
	defer f.Close()
	header := make([]byte, keyHeaderBytes)
	size, err := f.Size()
	if _, rerr := f.ReadAt(header, 0); err != nil || rerr != nil || !fitsSegment(header, keyMagic, keyVersion, seg) {
		return nil, errNoIndex
	}
	le := binary.LittleEndian
	blocks, count := int64(le.Uint32(header[28:])), int64(le.Uint64(header[32:]))
	if size != keyHeaderBytes+blocks*(8+keyBlockBytes) || count > blocks*keysPerBlock || count <= (blocks-1)*keysPerBlock {
		return nil, errNoIndex
	}
	directory := make([]byte, 8*blocks)
	if len(directory) > 0 {
		if _, err := f.ReadAt(directory, keyHeaderBytes); err != nil {
			return nil, errNoIndex
		}
	}
	if crc32.Update(crc32.Checksum(header[:44], castagnoli), castagnoli, directory) != le.Uint32(header[44:]) {
		return nil, errNoIndex
	}
	k := &keyFile{path: path, count: count, lowest: make([]uint64, blocks)}
	for i := range k.lowest {
		k.lowest[i] = le.Uint64(directory[8*i:])
	}
	return k, nil
}

// batchesOf returns the file offsets of the batches that hold a key of this hash, in order. The error is errNoIndex if
// a block cannot be believed.
func (k *keyFile) batchesOf(fsys vfs.FS, hash uint64) (rels []uint32, err error) {
	first := max(0, sort.Search(len(k.lowest), func(i int) bool { return k.lowest[i] >= hash })-1)
	if len(k.lowest) == 0 || k.lowest[first] > hash {
		return nil, nil
	}
	f, err := fsys.OpenFile(k.path, os.O_RDONLY, 0)
	if err != nil {
		return nil, errNoIndex
	}
	defer f.Close()
	var block [keyBlockBytes]byte
	le := binary.LittleEndian
	for i := first; i < len(k.lowest) && k.lowest[i] <= hash; i++ {
		at := keyHeaderBytes + int64(len(k.lowest))*8 + int64(i)*keyBlockBytes
		if _, err := f.ReadAt(block[:], at); err != nil || le.Uint64(block[:]) != k.lowest[i] ||
			crc32.Checksum(block[:keyBlockBytes-4], castagnoli) != le.Uint32(block[keyBlockBytes-4:]) {
			return nil, errNoIndex
		}
		n := int(min(keysPerBlock, k.count-int64(i)*keysPerBlock))
		from := sort.Search(n, func(i int) bool { return le.Uint64(block[i*keyEntryBytes:]) >= hash })
		for ; from < n && le.Uint64(block[from*keyEntryBytes:]) == hash; from++ {
			rels = append(rels, le.Uint32(block[from*keyEntryBytes+8:]))
		}
	}
	return rels, nil
}
