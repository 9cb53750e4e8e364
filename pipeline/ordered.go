package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/reorder"
)

// ordered puts the records of all partitions into event-time order: a merge by append
// stamp before the reorderer makes its input the same in every run.
type ordered struct {
	merge  *reorder.Merge[*incoming]
	buffer *reorder.Buffer[*incoming]
	lanes  map[Partition]*lane
	first  Partition // keeps the state
	now    int64     // the append stamp reached
	fresh  bool      // something was pushed or advanced since the last release
}

// lane is what is known of one partition.
type lane struct {
	merge, buffer reorder.Partition
	bytes         int64 // held in the merge
	next          int64 // read up to here
}

// newOrdered returns the order that the options ask for. state is that of an earlier
// run, nil where there is none.
func newOrdered(o reorder.Options, parts []Partition, from map[Partition]int64, state []byte) (*ordered, error) {
	buffer, err := reorder.New[*incoming](o)
	if err != nil {
		return nil, fmt.Errorf("setting up the reorderer: %w", err)
	}
	s := &ordered{
		merge: reorder.NewMerge[*incoming](), buffer: buffer, lanes: map[Partition]*lane{},
	}
	seekStamp := map[string]int64{}
	if state != nil {
		var c reorder.Checkpoint
		if err := c.UnmarshalBinary(state); err != nil {
			return nil, fmt.Errorf("decoding the reorderer's checkpoint: %w", err)
		}
		if err := buffer.Restore(c); err != nil {
			return nil, fmt.Errorf("restoring the reorderer: %w", err)
		}
		for _, p := range c.Partitions {
			seekStamp[p.Name] = p.SeekStamp
		}
	}
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Number, b.Number))
	})
	s.first = sorted[0]
	for _, p := range sorted {
		stamp, known := seekStamp[p.name()]
		if !known {
			stamp = reorder.MinTime
		}
		s.lanes[p] = &lane{merge: s.merge.Assign(p.name(), stamp), buffer: buffer.Assign(p.name()), next: from[p]}
	}
	return s, nil
}

// name is the partition's name in the reorderer, and so its rank among records with
// the same stamp.
func (p Partition) name() string { return fmt.Sprintf("%s/%05d", p.Stream, p.Number) }

// startOf returns where a reorderer's state has a partition read from, given the offset
// that was committed with it: a little below where records are held, and at the offset
// where there is none and what followed was passed over.
func startOf(state []byte, p Partition, offset int64) (int64, error) {
	var c reorder.Checkpoint
	if err := c.UnmarshalBinary(state); err != nil {
		return 0, fmt.Errorf("decoding the reorderer's checkpoint: %w", err)
	}
	for _, st := range c.Partitions {
		if st.Name == p.name() && offset <= st.Read {
			return st.Seek, nil
		}
	}
	return offset, nil
}

func (s *ordered) push(r *incoming) error {
	l := s.lanes[r.partition()]
	s.fresh = true
	l.bytes += r.size()
	l.next = r.Offset + 1
	return s.merge.Push(l.merge, r.Stamp, r.Offset, r)
}

func (s *ordered) passed(p Partition, next int64) {
	l := s.lanes[p]
	l.next = max(l.next, next)
}

func (s *ordered) advance(p Partition, stamp int64) {
	s.merge.SetFrontier(s.lanes[p].merge, stamp)
	s.fresh = true
}

func (s *ordered) ended(p Partition) {
	s.merge.End(s.lanes[p].merge)
	s.fresh = true
}

// release keeps C1: records enter the reorderer in canonical order, and the frontier
// moves its clock where there are none.
//
// Guarantee 13.
func (s *ordered) release(ctx context.Context, out releaser) error {
	if !s.fresh {
		return nil
	}
	s.fresh = false
	for {
		m, ok := s.merge.Pop()
		if !ok {
			break
		}
		r := m.Record
		l := s.lanes[r.partition()]
		l.bytes -= r.size()
		s.now = max(s.now, m.Stamp)
		err := s.buffer.Push(reorder.Record[*incoming]{
			Partition: l.buffer, Source: r.Source, Position: r.Offset,
			Stamp: m.Stamp, Time: r.Time, Size: uint32(min(r.size(), 1<<31)), Payload: r,
		})
		if err != nil {
			return fmt.Errorf("ordering %s/%d@%d: %w", r.Stream, r.Partition, r.Offset, err)
		}
		if !s.buffer.Boundary() {
			continue
		}
		s.buffer.Settle()
		if err := s.drain(ctx, out); err != nil {
			return err
		}
	}
	if f := s.merge.Frontier(); f != reorder.MinTime && f != reorder.MaxTime {
		s.buffer.Advance(f)
		s.now = max(s.now, f)
	}
	s.buffer.Settle()
	return s.drain(ctx, out)
}

// drain hands out what the reorderer let go, and tells of the boundary behind it.
func (s *ordered) drain(ctx context.Context, out releaser) error {
	for group := s.buffer.Next(); len(group) > 0; group = s.buffer.Next() {
		for i := range group {
			it := &group[i]
			r := released{record: it.Payload, late: it.Flags&reorder.Passed != 0, watermark: it.Watermark, lateness: it.Lateness()}
			if it.Kind != reorder.Main {
				r.side = it.Kind.String()
			}
			if err := out.deliver(ctx, r); err != nil {
				return err
			}
		}
	}
	return out.boundary(ctx, s.now)
}

func (s *ordered) finish(ctx context.Context, over bool, out releaser) error {
	if err := s.release(ctx, out); err != nil {
		return err
	}
	if over {
		s.buffer.End()
	} else {
		s.buffer.FlushIdle()
	}
	s.buffer.Settle()
	return s.drain(ctx, out)
}

func (s *ordered) mark() (mark, error) {
	b, err := s.buffer.Checkpoint()
	if err != nil {
		return mark{}, err
	}
	m := mark{offsets: map[Partition]int64{}, states: map[Partition][]byte{}}
	// What waits in the merge was not pushed and lies at or above the buffer's Read.
	states := map[string]reorder.PartitionState{}
	for _, st := range b.Partitions {
		states[st.Name] = st
	}
	for p, l := range s.lanes {
		st := states[p.name()]
		m.offsets[p] = st.Seek // from here it is read again, so this must be kept
		if st.Low == st.Read && s.merge.Waiting(l.merge) == 0 {
			m.offsets[p] = l.next // nothing is held: what was passed over counts
		}
	}
	if m.states[s.first], err = b.MarshalBinary(); err != nil {
		return mark{}, fmt.Errorf("encoding the reorderer's checkpoint: %w", err)
	}
	return m, nil
}

func (s *ordered) waiting(p Partition) int64 { return s.lanes[p].bytes }

func (s *ordered) held() (records, bytes, watermark int64) {
	m := s.buffer.Metrics()
	records, bytes = m.HeldRecords, m.HeldBytes
	for _, l := range s.lanes {
		records += int64(s.merge.Waiting(l.merge))
		bytes += l.bytes
	}
	if m.Watermark != reorder.MinTime && m.Watermark != reorder.MaxTime {
		watermark = m.Watermark
	}
	return records, bytes, watermark
}

// orderOptions translates the options of the file. changes says that the streams hold
// changes of databases: their own order is kept, and what is late passes, because a
// sink that lacks a change is wrong for good.
func orderOptions(c *OrderConfig, changes bool) reorder.Options {
	o := reorder.Options{
		MaxOutOfOrder: c.MaxOutOfOrder, IdleAfter: c.IdleAfter, Hold: c.Hold,
		CapBytes: c.Memory, FutureLimit: c.Future,
		Late:        map[string]reorder.Disposal{"side": reorder.Side, "pass": reorder.Pass, "drop": reorder.Drop}[c.Late],
		Implausible: map[string]reorder.Disposal{"clamp": reorder.Clamp, "side": reorder.Side}[c.Implausible],
	}
	if c.By == "source" || c.By != "event" && changes {
		o.Order = reorder.OrderSource
	}
	if changes {
		o.Late, o.Implausible = reorder.Pass, reorder.Clamp
	}
	return o
}
