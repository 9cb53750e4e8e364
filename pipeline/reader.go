package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partitionReader turns what is fetched of one partition into records.
type partitionReader struct {
	partition Partition
	next      int64 // read up to here
	end       int64 // of a bounded read; above it nothing is taken. -1 where there is none
	joiner    joiner
	epochs    epochs
	paused    bool
	ended     bool // the sequencer knows that it is done
}

// done reports whether a bounded read has reached its end.
func (p *partitionReader) done() bool { return p.end >= 0 && p.next >= p.end }

// reader reads the partitions of a sink. Not safe for concurrent use.
type reader struct {
	journal *Journal
	client  *kgo.Client
	parts   map[Partition]*partitionReader
	names   interner
	// onFrontier gets the records of FrontierStream; nil where they are not read.
	onFrontier func(*kgo.Record)
}

// maxPoll is how many records are taken at a time.
const maxPoll = 4096

// newReader begins to read. ends bound the read where not nil.
func newReader(j *Journal, from, ends map[Partition]int64, frontiers map[int32]int64) (*reader, error) {
	r := &reader{journal: j, parts: map[Partition]*partitionReader{}, names: interner{}}
	offsets := map[string]map[int32]kgo.Offset{}
	for p, o := range from {
		end, bounded := ends[p]
		if !bounded {
			end = -1
		}
		r.parts[p] = &partitionReader{partition: p, next: o, end: end}
		if r.parts[p].done() {
			continue
		}
		if offsets[p.Stream] == nil {
			offsets[p.Stream] = map[int32]kgo.Offset{}
		}
		offsets[p.Stream][p.Number] = kgo.NewOffset().At(o)
	}
	for p, o := range frontiers {
		if offsets[FrontierStream] == nil {
			offsets[FrontierStream] = map[int32]kgo.Offset{}
		}
		offsets[FrontierStream][p] = kgo.NewOffset().At(o)
	}
	client, err := j.newClient(append(j.consumerOptions(), kgo.ConsumePartitions(offsets))...)
	if err != nil {
		return nil, err
	}
	r.client = client
	return r, nil
}

func (r *reader) close() { r.client.Close() }

// done reports whether all partitions have reached their ends.
func (r *reader) done() bool {
	for _, p := range r.parts {
		if !p.done() {
			return false
		}
	}
	return true
}

// poll waits until something was fetched or ctx ends, and calls take with each record
// and passed with offsets that hold none. An end of ctx is no error.
func (r *reader) poll(ctx context.Context, take func(*incoming) error, passed func(p Partition, next int64)) (n int, err error) {
	fetches := r.client.PollRecords(ctx, maxPoll)
	for _, e := range fetches.Errors() {
		if errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled) {
			continue
		}
		if err := fetchError(context.Background(), kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: e.Topic, Partitions: []kgo.FetchPartition{{Partition: e.Partition, Err: e.Err}}}}}}); err != nil {
			return n, r.judge(e, err)
		}
	}
	for it := fetches.RecordIter(); !it.Done(); {
		k := it.Next()
		if k.Topic == FrontierStream && r.onFrontier != nil {
			if !k.Attrs.IsControl() {
				r.onFrontier(k)
			}
			continue
		}
		n++
		if err := r.accept(ctx, k, take, passed); err != nil {
			return n, err
		}
	}
	return n, nil
}

// judge turns an offset that is not there into the error that says so.
func (r *reader) judge(e kgo.FetchError, err error) error {
	p := Partition{Stream: e.Topic, Number: e.Partition}
	part := r.parts[p]
	var lost *kgo.ErrDataLoss
	if part == nil || (!isOutOfRange(err) && !errors.As(err, &lost)) {
		return fmt.Errorf("reading %s: %w", p, err)
	}
	if lost != nil {
		return shorterError(p, "the sink", part.next, err)
	}
	return gapError(p, part.next, err)
}

// accept takes the next record of a partition.
func (r *reader) accept(ctx context.Context, k *kgo.Record, take func(*incoming) error, passed func(p Partition, next int64)) error {
	part := r.parts[Partition{Stream: k.Topic, Number: k.Partition}]
	if part == nil || part.done() || k.Offset < part.next {
		return nil
	}
	if part.end >= 0 && k.Offset >= part.end {
		part.next = part.end
		return nil
	}
	part.epochs.note(k.Offset, k.LeaderEpoch)
	if k.Attrs.IsControl() {
		part.next = k.Offset + 1
		passed(part.partition, part.next)
		return nil
	}
	whole, err := part.joiner.add(k)
	var orphan *orphanError
	if errors.As(err, &orphan) {
		whole, err = r.lookBack(ctx, part, k, orphan)
	}
	if err != nil && !errors.As(err, &orphan) && !errors.Is(err, errChunkHeader) {
		return err
	}
	part.next = k.Offset + 1
	if err == nil && whole == nil {
		passed(part.partition, part.next)
		return nil
	}
	in := &incoming{foreign: header(k, HeaderStamp) == nil, appendTime: k.Attrs.TimestampType() == 1}
	if err != nil { // not to be put together: hand on what there is
		whole, in.broken = k, err.Error()
	}
	in.Record = fromKafka(whole, r.names)
	return take(in)
}

// lookBack finds the pieces of a record that lie before the place where the reader
// began, and returns the whole record if k is its last piece.
func (r *reader) lookBack(ctx context.Context, part *partitionReader, k *kgo.Record, orphan *orphanError) (*kgo.Record, error) {
	p := part.partition
	starts, err := r.journal.Starts(ctx, p.Stream)
	if err != nil {
		return nil, err
	}
	for width := int64(64); ; width *= 4 {
		from := max(k.Offset-width, starts[p])
		var j joiner
		seen := false
		err := r.journal.read(ctx, p.Stream, map[int32]int64{p.Number: from}, map[int32]int64{p.Number: k.Offset}, func(back *kgo.Record) error {
			c, ok, err := chunkOf(back)
			if err != nil || !ok || c.id != orphan.id || string(header(back, HeaderSource)) != orphan.source {
				return nil
			}
			if c.number == 1 {
				seen = true
			}
			if seen {
				_, err = j.add(back)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if seen {
			if part.joiner.open == nil {
				part.joiner.open = map[string]*joined{}
			}
			part.joiner.open[orphan.source] = j.open[orphan.source]
			return part.joiner.add(k)
		}
		if from == starts[p] {
			return nil, fmt.Errorf("%w: they are no longer kept", orphan)
		}
	}
}
