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
	var u unpacker
	plain, err := u.reader(h.Compression(), body)
	if err != nil {
		return fmt.Errorf("%w: unpacking: %w", ErrInvalidBatch, err)
	}
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

// unpacker unpacks the records of one batch after the other with the same memory, of which some codecs need a lot. It
// is not safe for concurrent use; its zero value is ready.
type unpacker struct {
	gzip *gzip.Reader
	lz4  lz4Blocks
	zstd *zstd.Decoder
}

// reader unpacks the records of a batch. What it returns is valid until the next call.
func (u *unpacker) reader(c Compression, body []byte) (_ io.Reader, err error) {
	in := bytes.NewReader(body)
	switch c {
	case None:
		return in, nil
	case Gzip:
		if u.gzip == nil {
			u.gzip = new(gzip.Reader)
		}
		return u.gzip, u.gzip.Reset(in)
	case LZ4:
		return &u.lz4, u.lz4.reset(body)
	case Zstd:
		if u.zstd == nil {
			// Without concurrency it has no goroutines, and needs no Close.
			u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxPlainBlock))
			if err != nil {
				return nil, err
			}
		}
		return u.zstd, u.zstd.Reset(in)
	case Snappy:
		b, err := unpackSnappy(body)
		return bytes.NewReader(b), err
	}
	return nil, fmt.Errorf("unknown compression %d", c)
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
