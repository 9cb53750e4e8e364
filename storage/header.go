package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// MaxBatchBytes is the largest record batch a journal stores.
const MaxBatchBytes = 12 << 20

// The layout of a Kafka record batch, version 2. It is big endian; the checksum covers everything from the attributes
// on, so that base offset and leader epoch can be set by whoever orders the log.
const (
	batchHeaderBytes = 61
	leastRecord      = 7 // bytes of a record without key, value and headers

	atBaseOffset    = 0
	atLength        = 8 // bytes after this field
	atLeaderEpoch   = 12
	atMagic         = 16
	atCRC           = 17
	atAttributes    = 21
	atLastDelta     = 23
	atBaseTimestamp = 27
	atMaxTimestamp  = 35
	atProducerID    = 43
	atProducerEpoch = 51
	atBaseSequence  = 53
	atRecords       = 57
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the header of a record batch.
type Header struct {
	BaseOffset    int64
	Length        int32 // bytes after the length field
	LeaderEpoch   int32
	Magic         int8
	CRC           uint32
	Attributes    int16
	LastDelta     int32 // offset of the last record above BaseOffset
	BaseTimestamp int64 // ms
	MaxTimestamp  int64 // ms
	ProducerID    int64 // -1: not idempotent
	ProducerEpoch int16
	BaseSequence  int32
	Records       int32
	Decision      int32 // of a marker: the number of what it ends its transaction by, as ControlBatch was told; else 0
}

// Compression is the codec of a batch's records.
type Compression int8

// The codecs of the record batch format.
const (
	None Compression = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// Size is the length of the whole batch in bytes.
func (h Header) Size() int { return int(h.Length) + atLeaderEpoch }

// Compression is the codec of the records.
func (h Header) Compression() Compression { return Compression(h.Attributes & 7) }

// LogAppendTime says that MaxTimestamp is the time of every record.
func (h Header) LogAppendTime() bool { return h.Attributes&8 != 0 }

// Transactional says that the batch belongs to a transaction.
func (h Header) Transactional() bool { return h.Attributes&16 != 0 }

// Control says that the batch is a transaction marker.
func (h Header) Control() bool { return h.Attributes&32 != 0 }

// Idempotent says that the batch carries a producer's sequence numbers.
func (h Header) Idempotent() bool { return h.ProducerID >= 0 }

// LastSequence is the sequence number of the last record; it wraps from 2^31-1 to 0.
func (h Header) LastSequence() int32 { return addSequence(h.BaseSequence, h.LastDelta) }

func addSequence(seq, n int32) int32 { return int32((int64(seq) + int64(n)) & 0x7fffffff) }

// ParseHeader reads the header of the batch that data starts with. It checks nothing but that there are enough bytes.
func ParseHeader(data []byte) (Header, error) {
	if len(data) < batchHeaderBytes {
		return Header{}, fmt.Errorf("%w: %d bytes are less than a batch header", ErrCorruptBatch, len(data))
	}
	return parseHeader(data), nil
}

func parseHeader(data []byte) Header {
	be := binary.BigEndian
	_ = data[batchHeaderBytes-1]
	h := Header{
		BaseOffset:    int64(be.Uint64(data[atBaseOffset:])),
		Length:        int32(be.Uint32(data[atLength:])),
		LeaderEpoch:   int32(be.Uint32(data[atLeaderEpoch:])),
		Magic:         int8(data[atMagic]),
		CRC:           be.Uint32(data[atCRC:]),
		Attributes:    int16(be.Uint16(data[atAttributes:])),
		LastDelta:     int32(be.Uint32(data[atLastDelta:])),
		BaseTimestamp: int64(be.Uint64(data[atBaseTimestamp:])),
		MaxTimestamp:  int64(be.Uint64(data[atMaxTimestamp:])),
		ProducerID:    int64(be.Uint64(data[atProducerID:])),
		ProducerEpoch: int16(be.Uint16(data[atProducerEpoch:])),
		BaseSequence:  int32(be.Uint32(data[atBaseSequence:])),
		Records:       int32(be.Uint32(data[atRecords:])),
	}
	if h.Control() {
		h.Decision = markerDecision(data)
	}
	return h
}

// CheckBatch checks that data is exactly one record batch a producer may send, and returns its header. The errors are
// ErrBatchTooLarge, ErrCorruptBatch and ErrInvalidBatch.
func CheckBatch(data []byte) (Header, error) {
	h, err := checkBatch(data)
	if err != nil {
		return h, err
	}
	switch {
	case h.Control():
		return h, fmt.Errorf("%w: a producer may not send control records", ErrInvalidBatch)
	case h.BaseOffset != 0:
		return h, fmt.Errorf("%w: base offset is %d, a producer sends 0", ErrInvalidBatch, h.BaseOffset)
	}
	return h, nil
}

// checkBatch holds for every batch that is stored, markers included.
func checkBatch(data []byte) (Header, error) {
	if len(data) > MaxBatchBytes {
		return Header{}, fmt.Errorf("%w: %d bytes", ErrBatchTooLarge, len(data))
	}
	h, err := ParseHeader(data)
	if err != nil {
		return h, err
	}
	switch {
	case h.Magic != 2:
		return h, fmt.Errorf("%w: magic %d, only record batch version 2 is stored", ErrInvalidBatch, h.Magic)
	case h.Length < 0 || h.Size() != len(data):
		return h, fmt.Errorf("%w: length field says %d bytes, there are %d", ErrCorruptBatch, h.Size(), len(data))
	case crc32.Checksum(data[atAttributes:], castagnoli) != h.CRC:
		return h, fmt.Errorf("%w: checksum does not match", ErrCorruptBatch)
	case h.Records <= 0:
		return h, fmt.Errorf("%w: %d records", ErrInvalidBatch, h.Records)
	case h.LastDelta != h.Records-1:
		return h, fmt.Errorf("%w: %d records, but the last offset delta is %d", ErrInvalidBatch, h.Records, h.LastDelta)
	case h.Compression() == None && int64(h.Records)*leastRecord > int64(len(data)-batchHeaderBytes):
		return h, fmt.Errorf("%w: %d records do not fit into %d bytes", ErrInvalidBatch, h.Records, len(data)-batchHeaderBytes)
	case h.Compression() > Zstd:
		return h, fmt.Errorf("%w: unknown compression %d", ErrInvalidBatch, h.Compression())
	case h.Idempotent() && (h.ProducerEpoch < 0 || h.BaseSequence < 0 && !h.Control()):
		return h, fmt.Errorf("%w: producer %d with epoch %d and sequence %d", ErrInvalidBatch, h.ProducerID, h.ProducerEpoch, h.BaseSequence)
	case !h.Idempotent() && (h.Transactional() || h.Control()):
		return h, fmt.Errorf("%w: transactional without a producer id", ErrInvalidBatch)
	case h.Control() && !h.Transactional():
		return h, fmt.Errorf("%w: control records outside a transaction", ErrInvalidBatch)
	}
	return h, nil
}

// stamp sets what the order of the log decides. Both fields lie outside the batch's checksum.
func stamp(data []byte, base int64, epoch uint32) {
	binary.BigEndian.PutUint64(data[atBaseOffset:], uint64(base))
	binary.BigEndian.PutUint32(data[atLeaderEpoch:], epoch)
}

// SetLogAppendTime gives all records of a checked batch the time ms, as topics with message.timestamp.type
// LogAppendTime want it, and computes the checksum anew.
func SetLogAppendTime(data []byte, ms int64) {
	be := binary.BigEndian
	be.PutUint16(data[atAttributes:], be.Uint16(data[atAttributes:])|8)
	be.PutUint64(data[atMaxTimestamp:], uint64(ms))
	be.PutUint32(data[atCRC:], crc32.Checksum(data[atAttributes:], castagnoli))
}
