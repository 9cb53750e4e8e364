package storage

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// maxUnpacked bounds what RecordTimes unpacks of a batch: else a few megabytes of it could take minutes.
const maxUnpacked = 1 << 30

// RecordTimes reads the records of a batch, and returns the earliest and the latest of their times in milliseconds. It is an
// ErrInvalidBatch if they are not as many as the header says, or not each at its own offset. Of records that are not
// compressed every field is checked.
func RecordTimes(data []byte) (earliest, latest int64, err error) {
	h, err := ParseHeader(data)
	if err != nil {
		return 0, 0, err
	}
	span := timesOf{header: h}
	if h.Compression() == None {
		err = span.readPlain(data[batchHeaderBytes:])
	} else {
		err = span.readPacked(data[batchHeaderBytes:])
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
		length, from := varintAt(body, at)
		end := from + int(length)
		if from < 0 || length < leastRecord-1 || length > int64(len(body)-from) {
			return fmt.Errorf("record %d of %d is cut short", s.records, s.header.Records)
		}
		record := body[:end]
		tsDelta, at1 := varintAt(record, from+1) // behind the attributes
		offsetDelta, at2 := varintAt(record, at1)
		at2 = pastBytes(record, pastBytes(record, at2)) // key and value
		headers, at3 := varintAt(record, at2)
		for ; headers > 0 && at3 >= 0; headers-- {
			at3 = pastBytes(record, pastBytes(record, at3))
		}
		if headers != 0 || at3 != end {
			return fmt.Errorf("record %d is not as long as its fields", s.records)
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

func (s *timesOf) readPacked(body []byte) error {
	var u unpacker
	in, err := u.reader(s.header.Compression(), body)
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(io.LimitReader(in, maxUnpacked), 16<<10)
	for range s.header.Records {
		offsetDelta, tsDelta, err := nextRecord(r)
		if err == nil {
			err = s.add(offsetDelta, tsDelta)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SetCreateTime gives a checked batch the latest time of its records, which they are found by, and says that these are the
// producer's. It computes the checksum anew.
func SetCreateTime(data []byte, latest int64) {
	be := binary.BigEndian
	be.PutUint16(data[atAttributes:], be.Uint16(data[atAttributes:])&^8)
	be.PutUint64(data[atMaxTimestamp:], uint64(latest))
	be.PutUint32(data[atCRC:], crc32.Checksum(data[atAttributes:], castagnoli))
}
