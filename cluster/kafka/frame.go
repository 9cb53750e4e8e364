package kafka

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
)

// errFrame is the cause of a connection's end when what came is no Kafka request.
var errFrame = errors.New("not a Kafka request")

// header is a request's header.
type header struct {
	key         int16
	version     int16
	correlation int32
	client      string
}

// request is one frame off the wire.
type request struct {
	header
	body []byte // part of frame
	frame
}

// frame is a pooled buffer with one request. Whoever needs its bytes beyond the
// answer holds a reference.
type frame struct {
	buf     *[]byte
	refs    atomic.Int32
	conn    *conn // that it came from
	charged int64 // what that was charged for it
}

func (f *frame) hold() { f.refs.Add(1) }

// drop gives back one reference; the last one returns the buffer.
func (f *frame) drop() {
	switch n := f.refs.Add(-1); {
	case n < 0:
		panic("kafka: frame dropped twice")
	case n == 0:
		f.conn.server.pool.put(f.buf)
		f.buf = nil
		f.conn.discharge(f.charged)
	}
}

// bufferPool keeps buffers by size class (powers of two from 4 KiB to 16 MiB),
// so that neither small nor large requests cost the garbage collector anything.
// It hands out pointers to slices, as a sync.Pool takes a slice only with an
// allocation.
type bufferPool struct {
	classes [13]sync.Pool
}

const smallestClass = 12 // 4 KiB

func (p *bufferPool) get(n int) *[]byte {
	class := max(bits.Len(uint(max(n, 1)-1)), smallestClass) - smallestClass
	if class >= len(p.classes) {
		b := make([]byte, n)
		return &b
	}
	if b, ok := p.classes[class].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<(class+smallestClass))
	return &b
}

func (p *bufferPool) put(b *[]byte) {
	class := bits.Len(uint(cap(*b))) - 1 - smallestClass
	if class < 0 || class >= len(p.classes) || cap(*b) != 1<<(class+smallestClass) {
		return
	}
	p.classes[class].Put(b)
}

// checkSize judges the length that begins a frame.
func checkSize(size int32, limit int) (int, error) {
	// The shortest request is a header without a client id and without a body.
	if size < 10 || int64(size) > int64(limit) {
		return 0, fmt.Errorf("%w: frame of %d bytes, allowed are 10 to %d", errFrame, size, limit)
	}
	return int(size), nil
}

// parseHeader reads the request header and returns the rest of the frame. known is
// the name that the client probably has.
func parseHeader(b []byte, known string) (header, []byte, error) {
	w := wire{b: b}
	h := header{key: w.int16(), version: w.int16(), correlation: w.int32()}
	if n := w.length(true); n >= 0 { // else it is null, which is as good as empty
		h.client = orKnown(w.take(n), known)
	}
	if api, ok := apis[h.key]; ok && api.flexible(h.version) {
		w.flexible = true
		w.tags()
	}
	if w.bad {
		return h, nil, fmt.Errorf("%w: header of request %d version %d", errFrame, h.key, h.version)
	}
	return h, w.b, nil
}
