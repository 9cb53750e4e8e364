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
	if b.open == MinTime {
		b.drained = b.open == b.w
		return nil
	}
	group := b.release()
	if len(group) == 0 {
		b.drained = b.open == b.w
	}
	return group
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

// release takes the next group below open out of the calendar.
func (b *Buffer[P]) release() []Item[P] {
	b.admitClamped(b.open)
	group := b.cal.next(b.open)
	for i := range group {
		it := &group[i]
		b.discharge(it)
		b.countOut(it)
		if b.forcing {
			it.Flags |= Forced
			b.stats.forcedRecords++
		}
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
	if b.open == MinTime {
		return
	}
	for group := b.release(); len(group) > 0; group = b.release() {
		b.backlog = append(b.backlog, group...)
	}
}

// emit appends a record that never was, or no longer is, in the calendar.
func (b *Buffer[P]) emit(it *Item[P]) {
	if it.Kind == Main {
		b.countOut(it)
	}
	b.backlog = append(b.backlog, *it)
}

// discharge undoes account.
func (b *Buffer[P]) discharge(it *Item[P]) {
	b.table.parts[it.Partition].held.release(it.Position)
	b.table.source(it.source).held--
	b.bytes -= recordOverhead + int64(it.size)
	b.stats.held--
}

func (b *Buffer[P]) countOut(it *Item[P]) {
	if it.Time < b.stats.lastOut {
		b.stats.inversionsOut++
	}
	b.stats.lastOut = it.Time
	b.stats.released++
}
