package reorder

// Next returns the next records that were let go, in order, or an empty slice if
// there are no more for now. The slice is valid until the next call of any
// method. Call it until it returns nothing.
func (b *Buffer[P]) Next() []Item[P] {
	if b.taken {
		b.resetBacklog()
	}
	if len(b.backlog) > 0 {
		b.taken = true
		return b.backlog
	}
	if b.open == b.dry {
		b.drained = b.open == b.w
		return nil
	}
	return b.release()
}

const keepBacklog = 1 << 14

func (b *Buffer[P]) resetBacklog() {
	b.taken = false
	if cap(b.backlog) > keepBacklog {
		b.backlog = nil
		return
	}
	if b.scrub {
		scrub(b.backlog)
	}
	b.backlog = b.backlog[:0]
}

// release takes the next group below open out of the calendar. When there is none
// left, there will be none until open rises: what is added is at or above W.
func (b *Buffer[P]) release() []Item[P] {
	if b.open == b.dry {
		return nil
	}
	b.admitClamped(b.open)
	group := b.cal.next(b.open)
	if len(group) == 0 {
		b.dry = b.open
		b.drained = b.open == b.w
	}
	if len(group) > 0 {
		b.discharge(group)
		b.countOut(group)
	}
	return group
}

// admitClamped moves the clamped records that the watermark has passed into the
// calendar.
func (b *Buffer[P]) admitClamped(bound int64) {
	for b.clamped.len() > 0 && b.clamped.first().Time < bound {
		b.clamped.pop(&b.moved)
		b.cal.add(&b.moved)
	}
}

// settleNow lets go of everything below the watermark and keeps it in the
// backlog, so that what is emitted next comes behind it.
func (b *Buffer[P]) settleNow() {
	b.open = b.w
	for group := b.release(); len(group) > 0; group = b.release() {
		b.backlog = append(b.backlog, group...)
	}
}

// emit appends a record that never was, or no longer is, in the calendar.
func (b *Buffer[P]) emit(it *Item[P]) {
	b.backlog = append(b.backlog, *it)
	if it.Kind == Main {
		b.countOut(b.backlog[len(b.backlog)-1:])
	}
}

// discharge undoes account.
func (b *Buffer[P]) discharge(group []Item[P]) {
	var (
		bytes int64
		of    Partition
		pg    *page // neighbours are mostly in one page
	)
	for i := range group {
		it := &group[i]
		if number := it.Position >> pageBits; pg == nil || pg.number != number || of != it.Partition {
			of, pg = it.Partition, b.table.parts[it.Partition].held.find(number)
		}
		pg.release(it.Position)
		bytes += recordOverhead + int64(it.size)
	}
	b.bytes -= bytes
	b.stats.held -= int64(len(group))
}

func (b *Buffer[P]) countOut(group []Item[P]) {
	last := b.stats.lastOut
	for i := range group {
		if group[i].Time < last {
			b.stats.inversionsOut++
		}
		last = group[i].Time
	}
	b.stats.lastOut = last
	b.stats.released += uint64(len(group))
	if b.forcing {
		for i := range group {
			group[i].Flags |= Forced
		}
		b.stats.forcedRecords += uint64(len(group))
	}
}
