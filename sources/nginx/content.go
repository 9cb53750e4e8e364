package nginx

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"strings"
)

// content is the text of a log file.
type content interface {
	io.ReaderAt
	io.Closer
	stat() (status, error) // of the file as it lies on the disk
	// length returns how much can be read of a file with this status, -1 where only the
	// end tells.
	length(status) int64
}

// isCompressed reports whether a file's name says that gzip wrote it.
func isCompressed(path string) bool { return strings.HasSuffix(path, ".gz") }

// openContent opens a log file, compressed or not.
func openContent(d disk, path string) (content, error) {
	h, err := d.open(path)
	if err != nil {
		return nil, err
	}
	if isCompressed(path) {
		return &packed{handle: h}, nil
	}
	return plain{h}, nil
}

// plain is a file as it is.
type plain struct{ handle }

func (plain) length(st status) int64 { return st.size }

// packed is the text in a gzip file. It is read forward; a read before the bytes at
// hand starts again. ReadAt may return io.ErrUnexpectedEOF while the file is being
// written, and can be called again later.
type packed struct {
	handle
	reader *gzip.Reader // nil before the first read and after an error
	at     int64        // offset of window[0]
	window []byte       // unpacked and not yet passed
}

func (*packed) length(status) int64 { return -1 }

// ReadAt reads unpacked bytes.
func (p *packed) ReadAt(b []byte, off int64) (int, error) {
	if p.reader == nil || off < p.at {
		if err := p.restart(); err != nil {
			return 0, err
		}
	}
	for p.at+int64(len(p.window)) < off+int64(len(b)) {
		if skip := min(off-p.at, int64(len(p.window))); skip > 0 {
			p.window = append(p.window[:0], p.window[skip:]...)
			p.at += skip
		}
		if err := p.more(); err != nil {
			n := p.copyAt(b, off)
			if err != io.EOF {
				p.reader = nil
			}
			return n, err
		}
	}
	return p.copyAt(b, off), nil
}

func (p *packed) restart() error {
	p.reader, p.at, p.window = nil, 0, p.window[:0]
	r, err := gzip.NewReader(io.NewSectionReader(p.handle, 0, math.MaxInt64))
	if err == io.EOF {
		return io.ErrUnexpectedEOF // an empty file: gzip has not begun to write
	}
	if err != nil {
		return err
	}
	p.reader = r
	return nil
}

// more unpacks one more piece into the window.
func (p *packed) more() error {
	const piece = 64 << 10
	n := len(p.window)
	p.window = append(p.window, make([]byte, piece)...)
	got, err := p.reader.Read(p.window[n:])
	p.window = p.window[:n+got]
	if got > 0 {
		return nil
	}
	return err
}

func (p *packed) copyAt(b []byte, off int64) int {
	if off < p.at || off >= p.at+int64(len(p.window)) {
		return 0
	}
	return copy(b, p.window[off-p.at:])
}

// unpacks reports whether the content is compressed and unpacks to this many bytes,
// as far as its end says itself: modulo 2^32.
func unpacks(c content, size int64) bool {
	p, ok := c.(*packed)
	if !ok {
		return false
	}
	st, err := p.stat()
	if err != nil {
		return false
	}
	var last [4]byte
	n, _ := p.handle.ReadAt(last[:], st.size-int64(len(last)))
	return n == len(last) && binary.LittleEndian.Uint32(last[:]) == uint32(size)
}
