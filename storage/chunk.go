package storage

import "sync"

// Chunk is what Read found: whole batches of one partition, in order.
type Chunk struct {
	// Pieces are the batches' bytes, to be sent one after the other. They may be used until Release, and must not be
	// changed: mostly they are the file's own pages. Whoever does more than pass them to a socket does it in Guard.
	Pieces [][]byte
	// Bytes is the length of all pieces.
	Bytes int
	// Next is the offset behind the last batch, and behind batches that ReadTagged left out; the offset that was asked
	// for if there is neither.
	Next int64
	// Behind is the offset behind the last batch of Pieces; the offset that was asked for if there is none.
	Behind int64

	pool *sync.Pool // of *[]byte; nil: memory is not used again
	held []*[]byte
	runs []heldRun
}

// heldRun keeps the pages that pieces lie in.
type heldRun struct {
	seg  *segment
	view *view
}

// Release gives the memory back; the pieces must not be used any more. It may be called again.
func (c *Chunk) Release() {
	for _, b := range c.held {
		c.pool.Put(b)
	}
	for _, r := range c.runs {
		r.view.release()
		r.seg.release()
	}
	c.Pieces, c.held, c.runs = nil, nil, nil
}

// buffer returns n bytes that are the chunk's until Release.
func (c *Chunk) buffer(n int) []byte {
	if c.pool == nil {
		return make([]byte, n)
	}
	b, _ := c.pool.Get().(*[]byte)
	if b == nil || cap(*b) < n {
		grown := make([]byte, max(n, 64<<10))
		b = &grown
	}
	c.held = append(c.held, b)
	return (*b)[:n]
}

func (c *Chunk) add(piece []byte, next int64) {
	c.Pieces = append(c.Pieces, piece)
	c.Bytes += len(piece)
	c.Next, c.Behind = next, next
}

// orError is what was read before an error, or the error if that is nothing.
func (c *Chunk) orError(err error) (*Chunk, error) {
	if c.Bytes > 0 {
		return c, nil
	}
	c.Release()
	return nil, err
}
