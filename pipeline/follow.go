package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Follow calls f with each record of a stream from the given offsets on, in the order of
// each partition, until ctx ends or f returns an error, which it passes on. Where to is
// not nil it stops before these offsets and returns nil.
func (j *Journal) Follow(ctx context.Context, stream string, from, to map[Partition]int64, f func(Record) error) error {
	joiners := map[int32]*joiner{}
	names := interner{}
	each := func(k *kgo.Record) error {
		in := joiners[k.Partition]
		if in == nil {
			in = &joiner{}
			joiners[k.Partition] = in
		}
		whole, err := in.add(k)
		var orphan *orphanError
		if errors.As(err, &orphan) {
			return nil // it begins before from: the record is not asked for
		}
		if err != nil || whole == nil {
			return err
		}
		r := fromKafka(whole, names)
		return f(r)
	}
	if to != nil {
		return j.read(ctx, stream, ofStream(from, stream), ofStream(to, stream), each)
	}
	return j.follow(ctx, stream, ofStream(from, stream), each)
}

// follow is read without an end.
func (j *Journal) follow(ctx context.Context, stream string, from map[int32]int64, f func(k *kgo.Record) error) error {
	start := map[int32]kgo.Offset{}
	for p, offset := range from {
		start[p] = kgo.NewOffset().At(offset)
	}
	client, err := j.newClient(append(j.consumerOptions(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{stream: start}))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if err := fetchError(ctx, fetches); err != nil {
			return fmt.Errorf("reading stream %s: %w", stream, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			if k := it.Next(); !k.Attrs.IsControl() {
				if err := f(k); err != nil {
					return err
				}
			}
		}
	}
}

// IsInternal reports whether a stream is one that Daybook keeps for itself. What was put
// aside, dead letters and late records, is the user's.
func IsInternal(stream string) bool {
	return strings.HasPrefix(stream, "daybook.") &&
		!strings.HasPrefix(stream, deadPrefix) && !strings.HasPrefix(stream, latePrefix)
}
