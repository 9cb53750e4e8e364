package load

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrWrong is the cause of a run whose records are not in the stream as they were sent.
var ErrWrong = errors.New("the stream does not hold what was produced")

// verify reads what was produced between the two places, unpacks it, and compares: each record of the corpus must be
// there as often as it was acknowledged.
func (r *run) verify(ctx context.Context, from, to offsets, acked []int64) error {
	numbers := make(map[uint64]int, len(r.corpus))
	for i, v := range r.corpus {
		numbers[xxhash.Sum64(v)] = i
	}
	// Another run of the engine, so that its counters are not the measured ones.
	v := &run{o: r.o, t: r.t}
	v.o.Mode = Consume
	v.limits.Store(&to)
	shares, err := r.t.shares(max(r.o.Clients, len(r.o.Brokers)), true)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	read := make([]int64, len(r.corpus))
	each := func(rec *kgo.Record) error {
		n, known := numbers[xxhash.Sum64(rec.Value)]
		if !known {
			return fmt.Errorf("%w: offset %d of partition %d holds %d bytes that nobody sent", ErrWrong, rec.Offset, rec.Partition, len(rec.Value))
		}
		mu.Lock()
		defer mu.Unlock()
		read[n]++
		return nil
	}
	if err := v.consume(ctx, func(s share) consumer { return &appConsumer{run: v, share: s, at: clone(from), each: each} }, shares); err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	for i := range read {
		// Without answers all that is known is what was sent.
		if read[i] != acked[i] {
			return fmt.Errorf("%w: record %d of the corpus was stored %d times, acknowledged %d times", ErrWrong, i, read[i], acked[i])
		}
	}
	return nil
}
