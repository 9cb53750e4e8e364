package storage

import (
	"encoding/binary"
	"hash/crc32"
)

// ControlBatch makes the marker that ends a producer's transaction in one partition: a batch with one control record.
// Append it with Batch.Marker set. decision numbers what the producer's coordinators decide, and rises: a marker whose
// number is not above that of the last one in the partition is a repetition, and is not stored again. 0 has no number.
// Kafka's tools show it as the coordinator's epoch.
func ControlBatch(producerID int64, epoch int16, decision int32, commit bool, ms int64) []byte {
	be := binary.BigEndian
	key := make([]byte, 4) // version 0, type 0 = abort, 1 = commit
	if commit {
		be.PutUint16(key[2:], 1)
	}
	value := be.AppendUint32(make([]byte, 2, 6), uint32(decision)) // version 0, coordinator epoch

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
	key := markerKey(data)
	return len(key) >= 4 && binary.BigEndian.Uint16(key[2:]) == 1
}

// markerDecision returns the number that a marker's batch carries; 0 if there is none or it is not understood. Data may end
// behind the batch's header.
func markerDecision(data []byte) int32 {
	key := markerKey(data)
	if len(key) < 4 {
		return 0
	}
	value := key[4:]
	if _, n := binary.Varint(value); n > 0 && len(value) >= n+6 {
		return int32(binary.BigEndian.Uint32(value[n+2:]))
	}
	return 0
}

// markerKey returns the control record from its key on, nil if it is not understood.
func markerKey(data []byte) []byte {
	r := data[batchHeaderBytes:]
	_, n := binary.Varint(r) // record length
	if n <= 0 || len(r) <= n {
		return nil
	}
	r = r[n+1:]   // attributes
	for range 3 { // timestamp delta, offset delta, key length
		_, n := binary.Varint(r)
		if n <= 0 {
			return nil
		}
		r = r[n:]
	}
	return r
}
