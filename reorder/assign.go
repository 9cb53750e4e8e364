package reorder

import (
	"cmp"
	"fmt"
	"slices"
)

// Assign registers a partition under a stable name and returns its handle. The
// partition holds the watermark until its first record, or until it has been idle
// for IdleAfter. Assigning a name again returns the same handle.
func (b *Buffer[P]) Assign(name string) Partition {
	if p, ok := b.table.byName[name]; ok && !b.table.parts[p].revoked {
		return p
	}
	b.touch()
	p := b.table.addPartition(name)
	b.cal.rank = b.table.live.rank
	own := b.table.parts[p].own
	b.table.source(own).lastStamp, b.table.source(own).assigned = b.record, true
	if b.record == MinTime {
		b.table.live.push(own) // its time runs from the first record on
	} else {
		b.join(own)
	}
	return p
}

// start sets the clock going at the first record: only now the partitions that
// were assigned before begin to be silent. (Not at the first Advance, of which a
// replay knows nothing.)
func (b *Buffer[P]) start(stamp int64) {
	live := &b.table.live
	for _, id := range live.ids {
		live.all[id].lastStamp = stamp
	}
	if len(live.ids) > 0 {
		b.idleDue = stamp + b.idleAfter
		b.due = min(b.due, b.idleDue)
	}
}

// Revoke forgets a partition that somebody else reads from now on: its records
// that are held are discarded, without output, and its sources leave the
// watermark's minimum. Records below the watermark are let go first.
func (b *Buffer[P]) Revoke(p Partition) error {
	if int(p) >= len(b.table.parts) || b.table.parts[p].revoked {
		return fmt.Errorf("revoking partition %d, which is not assigned", p)
	}
	b.touch()
	b.settleNow()
	kept := b.takeAll(p)
	b.table.dropPartition(p)
	b.ages.clear()
	b.holdDue = MaxTime
	for i := range kept {
		if it := &kept[i]; b.rules.order == OrderEvent && it.Flags&Clamped != 0 {
			b.holdClamped(it)
		} else {
			b.hold(it)
		}
	}
	b.due = min(b.idleDue, b.holdDue)
	if len(b.table.live.ids) > 0 {
		b.raise()
	}
	return nil
}

// takeAll empties the buffer and returns what is not of partition p in the order
// it was pushed.
func (b *Buffer[P]) takeAll(p Partition) []Item[P] {
	var kept []Item[P]
	b.admitClamped(MaxTime)
	for group := b.cal.next(MaxTime); len(group) > 0; group = b.cal.next(MaxTime) {
		b.discharge(group)
		for i := range group {
			if group[i].Partition != p {
				kept = append(kept, group[i])
			}
		}
	}
	b.cal.init(b.cal.bits, b.scrub)
	slices.SortFunc(kept, func(x, y Item[P]) int {
		return cmp.Or(cmp.Compare(x.Stamp, y.Stamp), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Position, y.Position))
	})
	return kept
}

// Name returns the name a partition was assigned under.
func (b *Buffer[P]) Name(p Partition) string { return b.table.parts[p].name }

// Source returns the name of the source of an item: its producer, else its
// partition. It is valid for what Next returned last.
func (b *Buffer[P]) Source(it *Item[P]) string { return b.table.source(it.source).name }
