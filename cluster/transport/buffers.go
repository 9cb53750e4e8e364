package transport

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// smallest is the size of the smallest pooled buffer; classes double up to the largest request.
const smallest = 4 << 10

// buffers is memory for what is received, by size, so that a small request does not hold a large buffer.
type buffers struct {
	classes [13]sync.Pool // of *[]byte with the capacity smallest << class
}

func classOf(n int) int { return bits.Len(uint(max(n-1, 0) / smallest)) }

// get returns n bytes. What is in them is left from before.
func (b *buffers) get(n int) *[]byte {
	c := classOf(n)
	buf, _ := b.classes[c].Get().(*[]byte)
	if buf == nil {
		grown := make([]byte, smallest<<c)
		buf = &grown
	}
	*buf = (*buf)[:n]
	return buf
}

func (b *buffers) put(buf *[]byte) { b.classes[classOf(cap(*buf))].Put(buf) }

// budget bounds the bytes that are held for what was received.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves n bytes, or says that there is no room for them.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *budget) give(n int64) { b.used.Add(-n) }
