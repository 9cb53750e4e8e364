package storage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxPlainBlock bounds what one block of a Snappy batch may unpack to. Other codecs are read as a stream.
const maxPlainBlock = 64 << 20

// eachTimestamp calls f with the offset and time of each record of a batch, until f returns false. Where all records
// have one time it calls f once, for the first one at or behind start. body is what follows the header. Keys and values
// are skipped, not kept: a batch that unpacks to gigabytes costs time, not memory.
func eachTimestamp(h Header, body []byte, start int64, f func(offset, ts int64) bool) error {
	if h.LogAppendTime() {
		f(max(h.BaseOffset, start), h.MaxTimestamp)
		return nil
	}
	plain, done, err := plainReader(h.Compression(), body)
	if err != nil {
		return fmt.Errorf("%w: unpacking: %w", ErrInvalidBatch, err)
	}
	defer done()
	r := bufio.NewReaderSize(plain, 16<<10)
	for range h.Records {
		delta, tsDelta, err := nextRecord(r)
		if err != nil {
			return fmt.Errorf("%w: reading its records: %w", ErrInvalidBatch, err)
		}
		if delta < 0 || delta > int64(h.LastDelta) {
			return fmt.Errorf("%w: offset delta %d in a batch of %d records", ErrInvalidBatch, delta, h.Records)
		}
		if !f(h.BaseOffset+delta, h.BaseTimestamp+tsDelta) {
			return nil
		}
	}
	return nil
}

// nextRecord reads the deltas of a record and skips the rest of it.
func nextRecord(r *bufio.Reader) (offsetDelta, tsDelta int64, err error) {
	length, err := binary.ReadVarint(r)
	if err != nil {
		return 0, 0, err
	}
	if length < 3 {
		return 0, 0, fmt.Errorf("record of %d bytes", length)
	}
	if _, err = r.ReadByte(); err != nil { // attributes
		return 0, 0, err
	}
	rest := length - 1
	for _, v := range []*int64{&tsDelta, &offsetDelta} {
		if *v, err = binary.ReadVarint(r); err != nil {
			return 0, 0, err
		}
		rest -= int64(len(binary.AppendVarint(nil, *v)))
	}
	if rest < 0 {
		return 0, 0, fmt.Errorf("record is shorter than its fields")
	}
	_, err = io.CopyN(io.Discard, r, rest)
	return offsetDelta, tsDelta, err
}

// plainReader unpacks the records of a batch. done gives its memory back.
func plainReader(c Compression, body []byte) (r io.Reader, done func(), err error) {
	nothing := func() {}
	switch c {
	case None:
		return bytes.NewReader(body), nothing, nil
	case Gzip:
		g, err := gzip.NewReader(bytes.NewReader(body))
		return g, nothing, err
	case LZ4:
		return lz4.NewReader(bytes.NewReader(body)), nothing, nil
	case Zstd:
		d, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPlainBlock))
		if err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	case Snappy:
		b, err := unpackSnappy(body)
		return bytes.NewReader(b), nothing, err
	}
	return nil, nil, fmt.Errorf("unknown compression %d", c)
}

// xerialMagic starts the framing that Java clients put around Snappy blocks.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

// unpackSnappy reads a bare Snappy block or the Java framing: magic, two version words, then blocks with their length.
func unpackSnappy(body []byte) ([]byte, error) {
	if !bytes.HasPrefix(body, xerialMagic) {
		return snappyBlock(nil, body)
	}
	if len(body) < 16 {
		return nil, io.ErrUnexpectedEOF
	}
	var plain []byte
	for body = body[16:]; len(body) > 0; {
		if len(body) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		n := binary.BigEndian.Uint32(body)
		if body = body[4:]; uint64(n) > uint64(len(body)) {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		if plain, err = snappyBlock(plain, body[:n]); err != nil {
			return nil, err
		}
		body = body[n:]
	}
	return plain, nil
}

func snappyBlock(plain, block []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return nil, err
	}
	if n+len(plain) > maxPlainBlock {
		return nil, fmt.Errorf("batch unpacks to more than %d bytes", maxPlainBlock)
	}
	b, err := snappy.Decode(nil, block)
	if err != nil {
		return nil, err
	}
	return append(plain, b...), nil
}
