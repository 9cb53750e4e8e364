package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumerOptions are those of every reader of the journal. Control records are kept,
// so that a reader sees offsets pass which hold nothing for it.
func (j *Journal) consumerOptions() []kgo.Opt {
	o := []kgo.Opt{
		kgo.KeepControlRecords(),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.FetchMaxBytes(16 << 20),
		kgo.FetchMaxPartitionBytes(2 << 20),
		kgo.MaxConcurrentFetches(2),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	}
	if j.options.Remote {
		o = append(o, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	return o
}

// read calls f with each record of the stream between two offsets of its partitions,
// in the order of each. A partition that is not in to, or at its end, is left out.
func (j *Journal) read(ctx context.Context, stream string, from, to map[int32]int64, f func(k *kgo.Record) error) error {
	open := map[int32]int64{}
	start := map[int32]kgo.Offset{}
	for p, end := range to {
		if from[p] < end {
			open[p] = end
			start[p] = kgo.NewOffset().At(from[p])
		}
	}
	if len(open) == 0 {
		return nil
	}
	client, err := j.newClient(append(j.consumerOptions(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{stream: start}))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetchError(ctx, fetches); err != nil {
			return fmt.Errorf("reading stream %s: %w", stream, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			k := it.Next()
			end, ok := open[k.Partition]
			if !ok {
				continue
			}
			if k.Offset < end && !k.Attrs.IsControl() {
				if err := f(k); err != nil {
					return err
				}
			}
			if k.Offset+1 >= end {
				delete(open, k.Partition)
			}
		}
	}
	return nil
}

// fetchError returns the first error of a poll that asking again will not mend.
func fetchError(ctx context.Context, fetches kgo.Fetches) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, e := range fetches.Errors() {
		var broker *kerr.Error
		if errors.As(e.Err, &broker) && broker.Retriable {
			continue
		}
		return fmt.Errorf("partition %d: %w", e.Partition, e.Err)
	}
	return nil
}

// errFound ends a read early.
var errFound = errors.New("found")

// recordAt returns the first record at or after an offset, nil where there is none
// before end.
func (j *Journal) recordAt(ctx context.Context, p Partition, offset, end int64) (*kgo.Record, error) {
	var found *kgo.Record
	err := j.read(ctx, p.Stream, map[int32]int64{p.Number: offset}, map[int32]int64{p.Number: end}, func(k *kgo.Record) error {
		found = k
		return errFound
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return found, nil
}

// firstStamped returns the first offset between start and end whose append stamp is at
// or above stamp, by halving: stamps rise with offsets but for the skew of writers'
// clocks, so leave room below.
func (j *Journal) firstStamped(ctx context.Context, p Partition, start, end, stamp int64) (int64, error) {
	lo, hi := start, end
	for lo < hi {
		middle := lo + (hi-lo)/2
		k, err := j.recordAt(ctx, p, middle, hi)
		if err != nil {
			return 0, err
		}
		if k == nil || fromKafka(k, nil).Stamp >= stamp {
			hi = middle
		} else {
			lo = k.Offset + 1
		}
	}
	return lo, nil
}

// lastRecord returns the last record before end, nil where there is none close to it.
func (j *Journal) lastRecord(ctx context.Context, p Partition, start, end int64) (*kgo.Record, error) {
	var last *kgo.Record
	from := map[int32]int64{p.Number: max(start, end-16)} // there may be control records
	err := j.read(ctx, p.Stream, from, map[int32]int64{p.Number: end}, func(k *kgo.Record) error {
		last = k
		return nil
	})
	return last, err
}

// highest returns the greatest append stamp that the streams have issued so far, from
// their last records, what their sources promise, and this process's own.
func (j *Journal) highest(ctx context.Context, streams map[string]StreamInfo) (int64, error) {
	var most int64
	for name, info := range streams {
		promised, err := j.highestFrontier(ctx, info)
		if err != nil {
			return 0, err
		}
		most = max(most, promised, j.stamper(name).last.Load())
		ends, err := j.Ends(ctx, name)
		if err != nil {
			return 0, err
		}
		starts, err := j.Starts(ctx, name)
		if err != nil {
			return 0, err
		}
		// Stamps of several writers rise only about: look at more than the last.
		from := map[int32]int64{}
		for p, end := range ends {
			from[p.Number] = max(starts[p], end-256)
		}
		err = j.read(ctx, name, from, ofStream(ends, name), func(k *kgo.Record) error {
			most = max(most, fromKafka(k, nil).Stamp)
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return most, nil
}

// ofStream returns the offsets of one stream by partition number.
func ofStream(offsets map[Partition]int64, stream string) map[int32]int64 {
	out := map[int32]int64{}
	for p, o := range offsets {
		if p.Stream == stream {
			out[p.Number] = o
		}
	}
	return out
}
