package pipeline

import (
	"context"
	"maps"

	"github.com/daybook-data/daybook/reorder"
)

// perPartition orders each partition alone, so that workers can share them.
type perPartition struct {
	orders map[Partition]*ordered
}

// newPerPartition returns an order for each of the partitions.
func newPerPartition(o reorder.Options, from map[Partition]int64, states map[Partition][]byte) (*perPartition, error) {
	s := &perPartition{orders: map[Partition]*ordered{}}
	o.CapBytes /= int64(max(len(from), 1))
	for p := range from {
		order, err := newOrdered(o, []Partition{p}, from, states[p])
		if err != nil {
			return nil, err
		}
		s.orders[p] = order
	}
	return s, nil
}

func (s *perPartition) push(r *incoming) error { return s.orders[r.partition()].push(r) }

func (s *perPartition) passed(p Partition, next int64) { s.orders[p].passed(p, next) }

func (s *perPartition) advance(p Partition, stamp int64) { s.orders[p].advance(p, stamp) }

func (s *perPartition) ended(p Partition) { s.orders[p].ended(p) }

// release lets the partitions go one after the other. A boundary of one is a boundary
// of all: what the others let go before is with the sink, and what they hold is in
// their marks.
func (s *perPartition) release(ctx context.Context, out releaser) error {
	for _, o := range s.orders {
		if err := o.release(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

func (s *perPartition) finish(ctx context.Context, over bool, out releaser) error {
	for _, o := range s.orders {
		if err := o.finish(ctx, over, out); err != nil {
			return err
		}
	}
	return nil
}

func (s *perPartition) mark() (mark, error) {
	m := mark{offsets: map[Partition]int64{}, states: map[Partition][]byte{}}
	for _, o := range s.orders {
		one, err := o.mark()
		if err != nil {
			return mark{}, err
		}
		maps.Copy(m.offsets, one.offsets)
		maps.Copy(m.states, one.states)
	}
	return m, nil
}

func (s *perPartition) waiting(p Partition) int64 { return s.orders[p].waiting(p) }

func (s *perPartition) held() (records, bytes, watermark int64) {
	first := true
	for _, o := range s.orders {
		r, b, w := o.held()
		records, bytes = records+r, bytes+b
		if first || w < watermark {
			watermark, first = w, false
		}
	}
	return records, bytes, watermark
}
