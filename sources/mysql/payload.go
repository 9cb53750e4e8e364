package mysql

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"
)

// The fields in front of a compressed transaction.
const (
	payloadEnd         = 0
	payloadSize        = 1
	payloadCompression = 2

	compressionZSTD = 0
	compressionNone = 255
)

// payload reads the events inside a compressed transaction, one at a time: it may
// unpack to far more than memory holds.
func (r *reader) payload(b []byte) error {
	compression := uint64(compressionNone)
	f := byteReader{b: b}
	for {
		kind := f.lenenc()
		if kind == payloadEnd || f.err != nil {
			break
		}
		value := byteReader{b: f.bytes(int(f.lenenc()))}
		if kind == payloadCompression {
			compression = value.lenenc()
		}
	}
	if f.err != nil {
		return fmt.Errorf("decoding a compressed transaction at %s: %w", r.at, f.err)
	}
	var in io.Reader = bytes.NewReader(f.b)
	switch compression {
	case compressionNone:
	case compressionZSTD:
		if r.zstd == nil {
			d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
			if err != nil {
				return fmt.Errorf("preparing to decompress: %w", err)
			}
			r.zstd = d
		}
		if err := r.zstd.Reset(in); err != nil {
			return fmt.Errorf("decompressing a transaction at %s: %w", r.at, err)
		}
		in = r.zstd
	default:
		return &pipeline.StopError{Code: "unsupported-compression", Where: r.at.String(),
			Err: fmt.Errorf("transactions compressed by method %d", compression),
			Fix: "SET GLOBAL binlog_transaction_compression = OFF, then " + anew}
	}
	return r.inner(in)
}

// inner handles the events of a decompressed stream. They have no checksums and no
// places of their own.
func (r *reader) inner(in io.Reader) error {
	var header [replication.EventHeaderSize]byte
	for {
		if _, err := io.ReadFull(in, header[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decompressing a transaction at %s: %w", r.at, err)
		}
		var h replication.EventHeader
		if err := h.Decode(header[:]); err != nil {
			return fmt.Errorf("decompressing a transaction at %s: %w", r.at, err)
		}
		size := int(h.EventSize) - len(header)
		if cap(r.unpacked) < size {
			r.unpacked = make([]byte, size)
		}
		body := r.unpacked[:size]
		if _, err := io.ReadFull(in, body); err != nil {
			return fmt.Errorf("decompressing a transaction at %s: %w", r.at, err)
		}
		if err := r.body(&h, body); err != nil {
			return err
		}
		if err := r.emitFull(); err != nil {
			return err
		}
	}
}
