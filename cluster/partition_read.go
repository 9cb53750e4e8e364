package cluster

import (
	"math"
	"time"

	"github.com/daybook-data/daybook/storage"
)

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
