package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// packedRecords unpacks the records of one batch after the other with the same memory, a part at a time: what a batch
// unpacks to is never held as a whole. It is not safe for concurrent use.
type packedRecords struct {
	unpacker unpacker
	buf      []byte

	source io.Reader
	blocks *lz4Blocks // the source, where it is that: its blocks need not be copied
	part   []byte     // unpacked, not read
	before int64      // bytes unpacked before part was
	whole  int        // bytes of part when it was new
}

var (
	_ io.ByteReader = (*packedRecords)(nil)

	errUnpacksToMore = fmt.Errorf("they unpack to more than %d bytes", maxUnpacked)
	errRecordLength  = errors.New("a record is not as long as its fields")
)

// reset begins with the records of a batch.
func (p *packedRecords) reset(c Compression, body []byte) (err error) {
	p.part, p.before, p.whole = nil, 0, 0
	p.source, err = p.unpacker.reader(c, body)
	p.blocks, _ = p.source.(*lz4Blocks)
	return err
}

// fill makes sure that there is something in part; io.EOF if all was read.
func (p *packedRecords) fill() (err error) {
	for len(p.part) == 0 && err == nil {
		p.before += int64(p.whole)
		if p.blocks != nil {
			p.part, err = p.blocks.next()
		} else {
			p.part, err = p.read()
		}
		if p.whole = len(p.part); p.before+int64(p.whole) > maxUnpacked {
			return errUnpacksToMore
		}
	}
	return err
}

func (p *packedRecords) read() ([]byte, error) {
	if p.buf == nil {
		p.buf = make([]byte, 64<<10)
	}
	n, err := io.ReadFull(p.source, p.buf)
	if n > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = nil // comes again
	}
	return p.buf[:n], err
}

// at is how many bytes were read.
func (p *packedRecords) at() int64 { return p.before + int64(p.whole-len(p.part)) }

// ReadByte implements io.ByteReader.
func (p *packedRecords) ReadByte() (byte, error) {
	if err := p.fill(); err != nil {
		return 0, err
	}
	b := p.part[0]
	p.part = p.part[1:]
	return b, nil
}

func (p *packedRecords) skip(n int64) error {
	for n > 0 {
		if err := p.fill(); err != nil {
			return err
		}
		step := min(n, int64(len(p.part)))
		p.part, n = p.part[step:], n-step
	}
	return nil
}

// record reads a record to its end.
func (p *packedRecords) record() (offsetDelta, tsDelta int64, err error) {
	if offsetDelta, tsDelta, end := recordAt(p.part, 0); end > 0 {
		p.part = p.part[end:]
		return offsetDelta, tsDelta, nil
	}
	// It is in several parts, or no record.
	length, err := binary.ReadVarint(p)
	if err != nil {
		return 0, 0, cutShort(err)
	}
	end := p.at() + length
	if _, err := p.ReadByte(); err != nil { // attributes
		return 0, 0, cutShort(err)
	}
	if tsDelta, err = binary.ReadVarint(p); err == nil {
		offsetDelta, err = binary.ReadVarint(p)
	}
	if err == nil {
		err = p.fields(end)
	}
	if err == nil && p.at() != end {
		err = errRecordLength
	}
	return offsetDelta, tsDelta, cutShort(err)
}

// fields passes key, value and headers of a record that ends at end.
func (p *packedRecords) fields(end int64) error {
	for range 2 {
		if err := p.field(end); err != nil {
			return err
		}
	}
	headers, err := binary.ReadVarint(p)
	if err != nil {
		return err
	}
	if headers < 0 || headers > end-p.at() {
		return errRecordLength
	}
	for range 2 * headers {
		if err := p.field(end); err != nil {
			return err
		}
	}
	return nil
}

// field passes a length and as many bytes; a negative one is null.
func (p *packedRecords) field(end int64) error {
	length, err := binary.ReadVarint(p)
	if err != nil {
		return err
	}
	if length > end-p.at() {
		return errRecordLength
	}
	return p.skip(length)
}

// done checks that nothing follows the last record.
func (p *packedRecords) done() error {
	switch err := p.fill(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New("more of them than the header says")
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
