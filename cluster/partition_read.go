package cluster

import (
	"math"
	"time"

	"github.com/daybook-data/daybook/storage"
)

// ReadRequest says what to read.
type ReadRequest struct {
	Offset   int64
	MaxBytes int
	// WholeBatch returns the first batch even if it is larger than MaxBytes.
	WholeBatch bool
	// Committed leaves out what open transactions have written and everything
	// behind it, and tells which transactions were aborted.
	Committed bool
	// Follower lets a replica answer that does not lead: up to what it knows to be
	// committed, which may be less than the leader knows, and never more.
	Follower bool
}

// Fetched is what a read found. Release it.
type Fetched struct {
	Bounds
	Pieces  [][]byte // whole batches in order; valid until Release
	Bytes   int      // of all pieces
	Next    int64    // the offset behind the last record
	Aborted []AbortedTxn
	// Idle says that nothing was found but offsets to pass over: a reader that can
	// wait should.
	Idle bool
	// Full says that there is a batch, but one larger than MaxBytes.
	Full  bool
	chunk *storage.Chunk
}

// AbortedTxn names a transaction whose records a reader of committed ones must
// skip, from FirstOffset up to its marker.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// Release gives the memory of the pieces back. It may be called more than once,
// and on the zero value.
func (f *Fetched) Release() {
	if f.chunk != nil {
		f.chunk.Release()
		f.chunk, f.Pieces = nil, nil
	}
}

// Read returns whole batches from the one that contains the offset on. At the
// end of the partition it returns none. An offset outside the partition is a
// *storage.RangeError, damaged data a *storage.DamageError.
func (p *Partition) Read(r ReadRequest) (Fetched, error) {
	j, err := p.handle.reader(r.Follower)
	if err != nil {
		return Fetched{}, err
	}
	// The stable end is read before the data: what it allows is decided.
	number := uint32(p.number)
	stable := j.LastStable(number)
	limit := int64(-1)
	if r.Committed {
		limit = stable
	}
	f := Fetched{Next: r.Offset}
	f.Start, f.HighWatermark = j.Bounds(number)
	f.LastStable = min(stable, f.HighWatermark)
	if r.Offset > f.HighWatermark && !r.Follower {
		// It may be what another leader has acknowledged that was elected a moment ago: only who leads now may say no.
		if f.Bounds, err = p.BoundsSince(time.Now()); err != nil {
			return Fetched{}, err
		}
	}
	if r.Offset < f.Start || r.Offset > f.HighWatermark {
		return Fetched{}, &storage.RangeError{Partition: number, Offset: r.Offset, Start: f.Start, End: f.HighWatermark}
	}
	if r.MaxBytes <= 0 && !r.WholeBatch {
		return f, nil
	}
	read, err := p.read(j, r, limit)
	if err != nil {
		return Fetched{}, err
	}
	if read.Bytes > r.MaxBytes && !r.WholeBatch && !read.Idle {
		read.Release()
		f.Full = true
		return f, nil
	}
	read.Bounds = f.Bounds
	f = read
	if r.Committed && f.Bytes > 0 {
		for _, a := range j.Aborted(number, r.Offset, f.Next) {
			f.Aborted = append(f.Aborted, AbortedTxn{ProducerID: a.Producer, FirstOffset: a.First})
		}
	}
	return f, nil
}

// read reads the partition, or what of it has the tag. Where that leaves offsets
// out at the end, an empty batch stands for them, so that consumers go on behind.
func (p *Partition) read(j *storage.Journal, r ReadRequest, limit int64) (f Fetched, err error) {
	number := uint32(p.number)
	if p.tag == "" {
		f.chunk, err = j.Read(number, r.Offset, r.MaxBytes, limit)
	} else {
		f.chunk, err = j.ReadTagged(number, r.Offset, r.MaxBytes, limit, p.tag)
	}
	if err != nil {
		return Fetched{}, err
	}
	f.Pieces, f.Bytes, f.Next = f.chunk.Pieces, f.chunk.Bytes, f.chunk.Next
	if p.tag != "" && f.Next > f.chunk.Behind {
		f.Next = min(f.Next, f.chunk.Behind+math.MaxInt32)
		f.Idle = f.Bytes == 0
		gap := storage.GapBatch(f.chunk.Behind, f.Next-1, p.LeaderEpoch(), time.Now().UnixMilli())
		f.Pieces, f.Bytes = append(f.Pieces, gap), f.Bytes+len(gap)
	}
	return f, nil
}
