package file

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A codec is how files are compressed.
type codec int

const (
	plain codec = iota
	gzipped
	zstandard
)

// A packer compresses pieces, each into a gzip member or zstd frame of its own: both formats allow any number of them
// in a row. So a file needs no compressor that lives as long as it does, and may be continued at any time.
type packer struct {
	kind codec
	zstd *zstd.Encoder
	gzip *gzip.Writer
	buf  bytes.Buffer
}

func newPacker(kind codec) (*packer, error) {
	p := &packer{kind: kind}
	switch kind {
	case gzipped:
		p.gzip = gzip.NewWriter(&p.buf)
	case zstandard:
		var err error
		if p.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// pack returns the compressed piece, which is valid until the next call. Equal pieces give equal bytes.
func (p *packer) pack(raw []byte) []byte {
	p.buf.Reset()
	switch p.kind {
	case gzipped:
		p.gzip.Reset(&p.buf)
		_, err := p.gzip.Write(raw)
		if cerr := p.gzip.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			panic(fmt.Sprintf("file: writing to memory: %v", err))
		}
		return p.buf.Bytes()
	case zstandard:
		p.buf.Write(p.zstd.EncodeAll(raw, p.buf.AvailableBuffer()))
		return p.buf.Bytes()
	}
	return raw
}
