package storage

import (
	"encoding/binary"
	"hash/crc32"
)

// maxSkipped is how many segments without a wanted batch one ReadTagged passes; then it returns, to go on from there.
const maxSkipped = 64

// ReadTagged is Read for batches that hold records with a tag, and for those of which it is not known: markers, and
// what is not indexed yet. So a batch too many may come, and within a batch all records do. Chunk.Next is behind what
// was left out, even where nothing was found.
func (j *Journal) ReadTagged(partition uint32, offset int64, maxBytes int, limit int64, tag string) (*Chunk, error) {
	// Whoever asks for a tag wants it found faster from now on.
	j.KeepIndexes(Indexes{Keys: j.indexer.keys.Load(), Tags: true})
	return j.read(&reading{j: j, partition: partition, offset: offset, limit: limit, room: maxBytes,
		tag: &tagFilter{hash: hashOf([]byte(tag))}})
}

// GapBatch is an empty record batch that stands for the offsets from first to last, as one whose records were all
// compacted away does. Consumers go on behind it.
func GapBatch(first, last int64, leaderEpoch int32, ms int64) []byte {
	be := binary.BigEndian
	b := make([]byte, batchHeaderBytes)
	be.PutUint64(b[atBaseOffset:], uint64(first))
	be.PutUint32(b[atLength:], batchHeaderBytes-atLeaderEpoch)
	be.PutUint32(b[atLeaderEpoch:], uint32(leaderEpoch))
	b[atMagic] = 2
	be.PutUint32(b[atLastDelta:], uint32(last-first))
	be.PutUint64(b[atBaseTimestamp:], uint64(ms))
	be.PutUint64(b[atMaxTimestamp:], uint64(ms))
	be.PutUint64(b[atProducerID:], ^uint64(0))
	be.PutUint16(b[atProducerEpoch:], ^uint16(0))
	be.PutUint32(b[atBaseSequence:], ^uint32(0))
	be.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
	return b
}
