package nginx

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// fileKey tells a file from others that exist at the same time. The kernel gives an
// inode to another file once it is free, so over time a key is only a hint.
type fileKey struct{ Device, Inode uint64 }

// content is the text of a log file. Its descriptor keeps the file readable after
// it was renamed or deleted.
type content interface {
	io.ReaderAt
	io.Closer
	// stat returns how much can be read now, -1 where only the end tells, and when
	// the file was last written.
	stat() (size int64, changed time.Time, err error)
}

// isCompressed reports whether a file's name says that gzip wrote it.
func isCompressed(path string) bool { return strings.HasSuffix(path, ".gz") }

// openContent opens a log file, compressed or not.
func openContent(path string) (content, fileKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileKey{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, fileKey{}, errors.Join(err, f.Close())
	}
	if isCompressed(path) {
		return &packed{file: f}, keyOf(path, info), nil
	}
	return plain{f}, keyOf(path, info), nil
}

// plain is a file as it is.
type plain struct{ *os.File }

func (p plain) stat() (int64, time.Time, error) {
	info, err := p.Stat()
	if err != nil {
		return 0, time.Time{}, err
	}
	return info.Size(), info.ModTime(), nil
}

// packed is the text in a gzip file. It is read forward; a read before the bytes at
// hand starts again. ReadAt may return io.ErrUnexpectedEOF while the file is being
// written, and can be called again later.
type packed struct {
	file   *os.File
	reader *gzip.Reader // nil before the first read and after an error
	at     int64        // offset of window[0]
	window []byte       // unpacked and not yet passed
}

func (p *packed) stat() (int64, time.Time, error) {
	info, err := p.file.Stat()
	if err != nil {
		return 0, time.Time{}, err
	}
	return -1, info.ModTime(), nil
}

// Close closes the file.
func (p *packed) Close() error { return p.file.Close() }

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
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, err := gzip.NewReader(p.file)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // an empty file: gzip has not begun to write
	}
	p.reader = r
	if err != nil {
		p.reader = nil
	}
	return err
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

// packedSize returns the unpacked size that a gzip file's end says, modulo 2^32.
func packedSize(path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	var last [4]byte
	if _, err := f.ReadAt(last[:], info.Size()-4); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(last[:]), nil
}
