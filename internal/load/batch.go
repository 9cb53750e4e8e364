package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The layout of a Kafka record batch, version 2.
const (
	batchHeaderBytes = 61
	atLength         = 8
	atMagic          = 16
	atCRC            = 17
	atAttributes     = 21
	atRecords        = 57

	// recordOverhead is about what a record takes beside its value.
	recordOverhead = 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch is a record batch that is ready to be sent, of the records first, first+1 ... of the corpus.
type batch struct {
	data  []byte
	first int
	n     int
}

// encoder makes record batches. It is not safe for concurrent use.
type encoder struct {
	codec string
	zip   kgo.Compressor // nil: none
	plain []byte
}

// newCodec returns the compressor of a name; nil for none.
func newCodec(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "none":
		return kgo.NoCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	}
	return kgo.CompressionCodec{}, fmt.Errorf("%w: compression %q", ErrOptions, name)
}

func newEncoder(codec string) (*encoder, error) {
	c, err := newCodec(codec)
	if err != nil {
		return nil, err
	}
	zip, err := kgo.DefaultCompressor(c)
	return &encoder{codec: codec, zip: zip}, err
}

// encode makes one batch of n records from the corpus, beginning with the record first. All have the time ms. The
// batch is of no idempotent producer: its numbers would be part of the checksum, and it is sent many times.
func (e *encoder) encode(corpus [][]byte, first, n int, ms int64) batch {
	e.plain = e.plain[:0]
	var r []byte
	for i := range n {
		value := corpus[(first+i)%len(corpus)]
		r = append(r[:0], 0, 0) // attributes; no time after the first record's
		r = binary.AppendVarint(r, int64(i))
		r = binary.AppendVarint(r, -1) // no key
		r = binary.AppendVarint(r, int64(len(value)))
		e.plain = binary.AppendVarint(e.plain, int64(len(r)+len(value)+1))
		e.plain = append(append(append(e.plain, r...), value...), 0) // no headers
	}
	body, attributes := e.plain, kgo.CodecNone
	if e.zip != nil {
		body, attributes = e.zip.Compress(new(bytes.Buffer), e.plain)
	}
	be := binary.BigEndian
	b := make([]byte, batchHeaderBytes, batchHeaderBytes+len(body))
	b = append(b, body...)
	be.PutUint32(b[atLength:], uint32(len(b)-12))
	be.PutUint32(b[12:], ^uint32(0)) // leader epoch
	b[atMagic] = 2
	be.PutUint16(b[atAttributes:], uint16(attributes))
	be.PutUint32(b[23:], uint32(n-1))
	be.PutUint64(b[27:], uint64(ms))
	be.PutUint64(b[35:], uint64(ms))
	be.PutUint64(b[43:], ^uint64(0)) // producer id
	be.PutUint16(b[51:], ^uint16(0))
	be.PutUint32(b[53:], ^uint32(0))
	be.PutUint32(b[atRecords:], uint32(n))
	be.PutUint32(b[atCRC:], crc32.Checksum(b[atAttributes:], castagnoli))
	return batch{data: b, first: first, n: n}
}
