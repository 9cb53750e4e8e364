package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pierrec/lz4/v4"
)

// lz4Blocks unpacks an LZ4 frame block by block. lz4.Reader takes four times as long: it copies each block once more and
// computes the checksum of the contents, which here is not needed, because that of the batch covers what they are unpacked
// from. Not safe for concurrent use; reset it before each frame.
type lz4Blocks struct {
	rest   []byte // of the frame
	linked bool   // a block may refer to the 64 KiB before it
	summed bool   // each block has a checksum behind it
	tail   int    // bytes of checksum behind the last block
	size   int64  // what the frame says it unpacks to; -1 if it does not
	most   int    // what a block may unpack to

	plain []byte
	dict  []byte
	read  []byte // of the last block, by Read
}

var _ io.Reader = (*lz4Blocks)(nil)

const lz4Magic = 0x184d2204

// Of the frame's flags.
const (
	lz4Dictionary  = 1 << 0
	lz4ContentSum  = 1 << 2
	lz4ContentSize = 1 << 3
	lz4BlockSum    = 1 << 4
	lz4Independent = 1 << 5

	lz4Stored = 1 << 31 // of a block's length: it is not compressed
	lz4Window = 64 << 10
)

var errLZ4Frame = errors.New("no LZ4 frame")

// reset begins with a frame.
func (l *lz4Blocks) reset(frame []byte) error {
	const least = 4 + 2 + 1 // magic, flags, checksum
	if len(frame) < least {
		return io.ErrUnexpectedEOF
	}
	if ok, err := lz4.ValidFrameHeader(frame); !ok || err != nil {
		return errors.Join(errLZ4Frame, err)
	}
	flags, most := frame[4], frame[5]>>4&7
	if binary.LittleEndian.Uint32(frame) != lz4Magic || flags>>6 != 1 || flags&lz4Dictionary != 0 || most < 4 {
		return fmt.Errorf("%w that could be read: flags %#x %#x", errLZ4Frame, flags, frame[5])
	}
	*l = lz4Blocks{
		rest: frame[least:], size: -1, most: 1 << (8 + 2*most), plain: l.plain, dict: l.dict[:0],
		linked: flags&lz4Independent == 0, summed: flags&lz4BlockSum != 0,
	}
	if flags&lz4ContentSum != 0 {
		l.tail = 4
	}
	if flags&lz4ContentSize != 0 {
		if len(l.rest) < 8 {
			return io.ErrUnexpectedEOF
		}
		l.size, l.rest = int64(binary.LittleEndian.Uint64(frame[6:])), l.rest[8:]
	}
	return nil
}

// Read implements io.Reader.
func (l *lz4Blocks) Read(b []byte) (n int, err error) {
	for len(l.read) == 0 && err == nil {
		l.read, err = l.next()
	}
	if err != nil {
		return 0, err
	}
	n = copy(b, l.read)
	l.read = l.read[n:]
	return n, nil
}

// next returns what the next block unpacks to, valid until the next call, and io.EOF behind the last one.
func (l *lz4Blocks) next() ([]byte, error) {
	if len(l.rest) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	length := binary.LittleEndian.Uint32(l.rest)
	l.rest = l.rest[4:]
	if length == 0 {
		return nil, l.end()
	}
	n := int64(length &^ lz4Stored)
	if n > int64(len(l.rest)) {
		return nil, io.ErrUnexpectedEOF
	}
	block := l.rest[:n]
	if l.rest = l.rest[n:]; l.summed {
		if len(l.rest) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		l.rest = l.rest[4:]
	}
	plain, err := l.unpack(block, length&lz4Stored != 0)
	if l.size >= 0 {
		if l.size -= int64(len(plain)); l.size < 0 && err == nil {
			err = fmt.Errorf("%w: longer than it says", errLZ4Frame)
		}
	}
	if l.linked {
		l.dict = append(l.dict, plain...)
		l.dict = append(l.dict[:0], l.dict[max(0, len(l.dict)-lz4Window):]...)
	}
	return plain, err
}

func (l *lz4Blocks) unpack(block []byte, stored bool) ([]byte, error) {
	if stored {
		if len(block) > l.most {
			return nil, fmt.Errorf("%w: a block of %d bytes, they have %d", errLZ4Frame, len(block), l.most)
		}
		return block, nil
	}
	if len(l.plain) < l.most {
		l.plain = make([]byte, l.most)
	}
	n, err := lz4.UncompressBlockWithDict(block, l.plain[:l.most], l.dict)
	if err != nil {
		return nil, err
	}
	return l.plain[:n], nil
}

// end checks what follows the last block.
func (l *lz4Blocks) end() error {
	if len(l.rest) != l.tail || l.size > 0 {
		return fmt.Errorf("%w: it is not as long as it says", errLZ4Frame)
	}
	return io.EOF
}
