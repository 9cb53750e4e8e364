package reorder

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// A Checkpoint is all that has to be saved of a Buffer. It holds no records: a
// restored buffer takes those back from the input. Apart from Clock and
// Watermark, which Advance moves, it depends on the input alone.
type Checkpoint struct {
	Watermark int64
	Clock     int64
	// Max is the greatest M of all sources ever.
	Max        int64
	Partitions []PartitionState // by name
	Sources    []SourceState    // by partition and name; idle ones below the watermark are left out
	cut        int64            // the slot of the watermark after the last Push
	bypass     bool
	rules      rules
}

// A PartitionState says where to go on in one partition.
type PartitionState struct {
	Name string
	// Read is the position after the last record read.
	Read int64
	// Low is the lowest position still held, else Read. Everything below has left the
	// buffer.
	Low int64
	// Seek is where the reader starts again, and how far retention may go: Low, or a
	// little below it where stamps did not rise strictly. SeekStamp is the running
	// maximum of the stamps before Seek; give it to Merge.Assign.
	Seek, SeekStamp int64
}

// A SourceState is the memory of one source.
type SourceState struct {
	Partition string
	Source    string // empty for the partition itself
	Max       int64  // M
	LastStamp int64
	Live      bool
	// Assigned: it is live only because its partition was assigned.
	Assigned bool
}

// redo is what a restored buffer knows of the run it continues.
type redo struct {
	rules     rules
	watermark int64
}

// Checkpoint returns the state at a release boundary. Call Settle and take
// everything from Next first, else the error is ErrNotDrained. Store it once all
// that was taken is durable at its destination, or together with it.
func (b *Buffer[P]) Checkpoint() (Checkpoint, error) {
	if !b.drained || b.open != b.w {
		return Checkpoint{}, ErrNotDrained
	}
	cp := Checkpoint{Watermark: b.w, Clock: b.clock, Max: b.table.max, cut: b.cut, bypass: b.bypass, rules: b.rules}
	for p := range b.table.parts {
		if part := &b.table.parts[p]; !part.revoked {
			cp.Partitions = append(cp.Partitions, part.state())
		}
	}
	slices.SortFunc(cp.Partitions, func(a, b PartitionState) int { return cmp.Compare(a.Name, b.Name) })
	for _, id := range b.table.ranked {
		s := b.table.source(id)
		if s.at == none && s.max < b.w && !s.own {
			continue // see table.forget
		}
		st := SourceState{b.table.parts[s.partition].name, s.name, s.max, s.lastStamp, s.at != none, s.assigned}
		if s.own {
			st.Source = ""
		}
		if s.at == none {
			st.LastStamp = MinTime // nothing depends on it
			if s.max < b.w {
				st.Max = MinTime
			}
		}
		cp.Sources = append(cp.Sources, st)
	}
	slices.SortFunc(cp.Sources, func(a, b SourceState) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Source, b.Source))
	})
	return cp, nil
}

// Low returns the lowest position of a partition that is still held, else the
// position after the last one read.
func (b *Buffer[P]) Low(p Partition) int64 { return b.table.parts[p].state().Low }

// state works out the cursor of a partition.
func (p *partition) state() PartitionState {
	st := PartitionState{Name: p.name, Read: p.read()}
	low, pg := p.held.lowest()
	switch {
	case pg == nil && p.next < p.restored: // still re-reading: what follows may be held
		st.Low = max(p.next, p.low)
		st.Seek, st.SeekStamp = p.next, p.stamp
	case pg == nil:
		st.Low, st.Seek, st.SeekStamp = st.Read, st.Read, p.stamp
	case pg.plateau:
		st.Low, st.Seek, st.SeekStamp = low, pg.first, pg.stamp
	default:
		st.Low, st.Seek, st.SeekStamp = low, low, pg.stamp
	}
	return st
}

// Restore makes a new buffer go on where a checkpoint was taken. It must come
// before the first Push. The partitions of the checkpoint are assigned, under
// handles in the order of their names; Assign returns the handle of each.
//
// The options may differ from those of the former run: what was held is found
// again by the rules it was pushed under, all else follows the new ones.
func (b *Buffer[P]) Restore(cp Checkpoint) error {
	if b.clock != MinTime || len(b.table.parts) > 0 {
		return errors.New("restoring into a buffer that is already in use")
	}
	for _, st := range cp.Partitions {
		if b.Assign(st.Name) != Partition(len(b.table.parts)-1) {
			return fmt.Errorf("restoring a checkpoint that has partition %s twice", st.Name)
		}
		part := &b.table.parts[len(b.table.parts)-1]
		part.next, part.restored, part.low = st.Seek, st.Read, st.Low
		part.stamp = st.SeekStamp
		b.table.live.remove(part.own)
		b.table.source(part.own).assigned = false
	}
	b.clock, b.record = cp.Clock, cp.Clock
	if cp.bypass {
		return b.restoreSwitchedOff()
	}
	b.w, b.open, b.dry, b.table.max = cp.Watermark, cp.Watermark, cp.Watermark, cp.Max
	b.cut = cp.cut
	b.redo = redo{cp.rules, cp.Watermark}
	for _, st := range cp.Sources {
		if err := b.restoreSource(st); err != nil {
			return err
		}
	}
	b.cal.rank = b.table.live.rank
	return nil
}

// restoreSwitchedOff starts a new order (W = -inf) at the positions of a buffer
// whose ordering was off.
func (b *Buffer[P]) restoreSwitchedOff() error {
	for p := range b.table.parts {
		own := b.table.parts[p].own
		b.table.source(own).lastStamp, b.table.source(own).assigned = b.clock, true
		b.join(own)
	}
	return nil
}

func (b *Buffer[P]) restoreSource(st SourceState) error {
	p, ok := b.table.byName[st.Partition]
	if !ok {
		return fmt.Errorf("restoring source %q of partition %q, which the checkpoint does not list", st.Source, st.Partition)
	}
	id := b.table.producer(p, st.Source)
	s := b.table.source(id)
	s.max, s.lastStamp, s.assigned = st.Max, st.LastStamp, st.Assigned
	if st.Live {
		b.table.live.push(id)
		b.idleDue = min(b.idleDue, s.lastStamp+b.idleAfter)
		b.due = min(b.due, b.idleDue)
	}
	return nil
}

// takeBack decides about a record that the former run has read: it is held again
// if it was held then, and has otherwise already left. It was held if its order
// time is at or above the watermark of the checkpoint, for what was accepted below
// has been released, and what was late was below an even lower watermark.
func (b *Buffer[P]) takeBack(part *partition, r *Record[P], stamp int64) {
	b.stats.reread++
	if r.Position < part.low {
		return
	}
	id := b.producer(r)
	s := b.table.source(id)
	time, flags, ok := b.redo.orderTime(s, r.Time, stamp)
	if !ok || time < b.redo.watermark {
		return
	}
	b.stats.takenBack++
	it := b.item(r, id, stamp, time)
	it.Flags = flags
	switch {
	case time < b.w: // not in canonical order: the watermark moved on before it came back
		b.lateRecord(it, s)
	case flags&Clamped != 0 && b.redo.rules.order == OrderEvent:
		b.holdClamped(it)
	default:
		b.hold(it)
	}
}

// orderTime computes the order time as judge did.
//
// For OrderSource the running maximum starts again at minus infinity. That is
// enough: the maximum that gave a held record its order time is at or above W, so
// the record that set it is held too, and is read again before. For the same
// reason a clamped record without a predecessor here had already left.
func (d *redo) orderTime(s *source, time, stamp int64) (int64, Flags, bool) {
	ok := d.rules.plausible(time, stamp)
	if d.rules.order == OrderSource {
		if ok {
			s.redo = max(s.redo, time)
			return s.redo, 0, true
		}
		return s.redo, Clamped, s.redo != MinTime && d.rules.implausible == Clamp
	}
	if ok {
		return time, 0, true
	}
	return stamp, Clamped, d.rules.implausible == Clamp
}
