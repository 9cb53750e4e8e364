package storage

import (
	"encoding/binary"
	"hash/crc32"
)

// ControlBatch makes the marker that ends a producer's transaction in one partition: a batch with one control record.
// Append it with Batch.Marker set.
func ControlBatch(producerID int64, epoch int16, coordinatorEpoch int32, commit bool, ms int64) []byte {
	be := binary.BigEndian
	key := make([]byte, 4) // version 0, type 0 = abort, 1 = commit
	if commit {
		be.PutUint16(key[2:], 1)
	}
	value := be.AppendUint32(make([]byte, 2, 6), uint32(coordinatorEpoch)) // version 0, coordinator epoch

	record := []byte{0}                     // attributes
	record = binary.AppendVarint(record, 0) // timestamp delta
	record = binary.AppendVarint(record, 0) // offset delta
	record = append(binary.AppendVarint(record, 4), key...)
	record = append(binary.AppendVarint(record, 6), value...)
	record = binary.AppendVarint(record, 0) // no headers

	b := make([]byte, batchHeaderBytes, batchHeaderBytes+len(record)+2)
	b = append(binary.AppendVarint(b, int64(len(record))), record...)
	be.PutUint32(b[atLength:], uint32(len(b)-atLeaderEpoch))
	be.PutUint32(b[atLeaderEpoch:], ^uint32(0))
	b[atMagic] = 2
	be.PutUint16(b[atAttributes:], 16|32)
	be.PutUint64(b[atBaseTimestamp:], uint64(ms))
	be.PutUint64(b[atMaxTimestamp:], uint64(ms))
	be.PutUint64(b[atProducerID:], uint64(producerID))
	be.PutUint16(b[atProducerEpoch:], uint16(epoch))
	be.PutUint32(b[atBaseSequence:], ^uint32(0))
	be.PutUint32(b[atRecords:], 1)
	be.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
	return b
}

// markerCommits says whether a marker's batch commits (or else aborts) its transaction. Data must be a checked control
// batch; one that is not understood counts as an abort, which hides records instead of exposing them.
func markerCommits(data []byte) bool {
	r := data[batchHeaderBytes:]
	for range 1 { // record length
		_, n := binary.Varint(r)
		if n <= 0 {
			return false
		}
		r = r[n:]
	}
	if len(r) == 0 {
		return false
	}
	r = r[1:]     // attributes
	for range 3 { // timestamp delta, offset delta, key length
		_, n := binary.Varint(r)
		if n <= 0 {
			return false
		}
		r = r[n:]
	}
	return len(r) >= 4 && binary.BigEndian.Uint16(r[2:]) == 1
}
