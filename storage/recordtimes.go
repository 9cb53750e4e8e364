package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"
)

// maxUnpacked bounds what is unpacked of a batch: else a few megabytes of it could take minutes. Consumers have the same
// bound (franz-go), or a lower one.
const maxUnpacked = 1 << 30

// A RecordReader reads the records of batches. It is safe for concurrent use. What is compressed is read by as many at a
// time as there are CPUs, so that its memory is bounded, whatever is sent.
type RecordReader struct {
	packed chan *packedRecords
}

// NewRecordReader returns a RecordReader.
func NewRecordReader() *RecordReader {
	r := &RecordReader{packed: make(chan *packedRecords, runtime.GOMAXPROCS(0))}
	for range cap(r.packed) {
		r.packed <- new(packedRecords)
	}
	return r
}

// Times returns the earliest and the latest of the times of a batch's records, in milliseconds. It is an ErrInvalidBatch if
// they can't be unpacked, are not as many as the header says, not each at its own offset, or one is not as long as its fields.
func (r *RecordReader) Times(data []byte) (earliest, latest int64, err error) {
	h, err := ParseHeader(data)
	if err != nil {
		return 0, 0, err
	}
	span := timesOf{header: h}
	if h.Compression() == None {
		err = span.readPlain(data[batchHeaderBytes:])
	} else {
		p := <-r.packed
		err = span.readPacked(p, data[batchHeaderBytes:])
		r.packed <- p
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: its records: %w", ErrInvalidBatch, err)
	}
	return h.BaseTimestamp + span.earliest, h.BaseTimestamp + span.latest, nil
}

// timesOf is the span of the times of a batch's records, as they are read.
type timesOf struct {
	header           Header
	records          int32
	earliest, latest int64 // above the batch's base
}

func (s *timesOf) add(offsetDelta, tsDelta int64) error {
	if offsetDelta != int64(s.records) {
		return fmt.Errorf("record %d has the offset delta %d", s.records, offsetDelta)
	}
	if s.records == 0 {
		s.earliest, s.latest = tsDelta, tsDelta
	}
	s.earliest, s.latest = min(s.earliest, tsDelta), max(s.latest, tsDelta)
	s.records++
	return nil
}

func (s *timesOf) readPlain(body []byte) error {
	at := 0
	for range s.header.Records {
		offsetDelta, tsDelta, end := recordAt(body, at)
		if end < 0 {
			return fmt.Errorf("record %d of %d is cut short, or not as long as its fields", s.records, s.header.Records)
		}
		if err := s.add(offsetDelta, tsDelta); err != nil {
			return err
		}
		at = end
	}
	if at < len(body) {
		return fmt.Errorf("%d bytes behind the last of them", len(body)-at)
	}
	return nil
}

func (s *timesOf) readPacked(p *packedRecords, body []byte) error {
	if err := p.reset(s.header.Compression(), body); err != nil {
		return err
	}
	for range s.header.Records {
		offsetDelta, tsDelta, err := p.record()
		if err != nil {
			return fmt.Errorf("record %d of %d: %w", s.records, s.header.Records, err)
		}
		if err := s.add(offsetDelta, tsDelta); err != nil {
			return err
		}
	}
	return p.done()
}

// recordAt reads the record at body[at:], and returns where it ends: -1 if it is no whole record.
func recordAt(body []byte, at int) (offsetDelta, tsDelta int64, end int) {
	length, from := varintAt(body, at)
	if from < 0 || length < leastRecord-1 || length > int64(len(body)-from) {
		return 0, 0, -1
	}
	end = from + int(length)
	record := body[:end]
	tsDelta, at1 := varintAt(record, from+1) // behind the attributes
	offsetDelta, at2 := varintAt(record, at1)
	at2 = pastBytes(record, pastBytes(record, at2)) // key and value
	headers, at3 := varintAt(record, at2)
	for ; headers > 0 && at3 >= 0; headers-- {
		at3 = pastBytes(record, pastBytes(record, at3))
	}
	if headers != 0 || at3 != end {
		return 0, 0, -1
	}
	return offsetDelta, tsDelta, end
}

// varintAt reads the number at b[at:], and returns where the next field is: -1 if there is no number, or at is negative.
func varintAt(b []byte, at int) (v int64, next int) {
	if uint(at) >= uint(len(b)) {
		return 0, -1
	}
	if c := b[at]; c < 0x80 { // most
		return int64(c>>1) ^ -int64(c&1), at + 1
	}
	v, n := binary.Varint(b[at:])
	if n <= 0 {
		return 0, -1
	}
	return v, at + n
}

// pastBytes is where the field behind a key or a value at b[at:] is, -1 if there is none; a negative length is null.
func pastBytes(b []byte, at int) int {
	n, at := varintAt(b, at)
	if at < 0 || n > int64(len(b)-at) {
		return -1
	}
	return at + int(max(n, 0))
}

// SetCreateTime gives a checked batch the latest time of its records, which they are found by, and says that these are the
// producer's. It computes the checksum anew.
func SetCreateTime(data []byte, latest int64) {
	be := binary.BigEndian
	be.PutUint16(data[atAttributes:], be.Uint16(data[atAttributes:])&^8)
	be.PutUint64(data[atMaxTimestamp:], uint64(latest))
	be.PutUint32(data[atCRC:], crc32.Checksum(data[atAttributes:], castagnoli))
}
