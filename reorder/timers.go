package reorder

// runTimers runs what became due up to the clock, in the order of the due times,
// so that the result does not depend on how the clock got there (C1). At the same
// time sources turn idle before the hold limit is looked at.
func (b *Buffer[P]) runTimers() {
	for {
		b.idleDue, b.holdDue = b.nextIdle(), b.nextHold()
		b.due = min(b.idleDue, b.holdDue)
		switch {
		case b.due > b.clock:
			return
		case b.idleDue <= b.holdDue:
			b.turnIdle(b.idleDue)
		default:
			b.holdExpired()
		}
	}
}

// nextIdle returns when the next live source turns idle.
func (b *Buffer[P]) nextIdle() int64 {
	live := &b.table.live
	if len(live.ids) == 0 {
		return MaxTime
	}
	oldest := MaxTime
	for _, id := range live.ids {
		oldest = min(oldest, live.all[id].lastStamp)
	}
	return oldest + b.idleAfter
}

// turnIdle keeps C5 for the sources that turn idle at a time.
func (b *Buffer[P]) turnIdle(at int64) {
	live := &b.table.live
	b.silent = b.silent[:0]
	for _, id := range live.ids {
		if live.all[id].lastStamp+b.idleAfter <= at {
			b.silent = append(b.silent, id)
		}
	}
	for _, id := range b.silent {
		live.remove(id)
		live.all[id].assigned = false
	}
	if len(live.ids) == 0 {
		b.allIdle()
	} else {
		b.raise()
	}
}

// allIdle raises W above everything accepted and lets all of it go.
func (b *Buffer[P]) allIdle() {
	if b.table.max != MinTime {
		b.w = max(b.w, b.table.max+1)
	}
	b.open = b.w
	if b.clamped.len() == 0 {
		return
	}
	b.settleNow()
	for b.clamped.len() > 0 {
		b.releaseClamped(0)
	}
}

// nextHold returns when the oldest record will have waited for the hold limit.
func (b *Buffer[P]) nextHold() int64 {
	oldest := MaxTime
	if a, ok := b.ages.oldest(b.w); ok {
		oldest = a.stamp
	}
	if it := b.oldestClamped(); it != nil {
		oldest = min(oldest, it.Stamp)
	}
	if oldest == MaxTime {
		return MaxTime
	}
	return oldest + b.holdFor
}

// oldestClamped returns the first clamped record the watermark has not passed.
func (b *Buffer[P]) oldestClamped() *Item[P] {
	b.admitClamped(b.w)
	if b.clamped.len() == 0 {
		return nil
	}
	return b.clamped.first()
}

// holdExpired keeps C8 for the oldest record.
func (b *Buffer[P]) holdExpired() {
	b.settleNow()
	it := b.oldestClamped()
	a, ok := b.ages.oldest(b.w)
	if it != nil && (!ok || it.Stamp < a.stamp) {
		b.releaseClamped(Forced)
		return
	}
	b.stats.forcedHold++
	b.force(a.time)
}

// releaseClamped lets the first clamped record go without moving the watermark.
// It is older than everything that stays, so no checkpoint will have it read
// again.
func (b *Buffer[P]) releaseClamped(flags Flags) {
	it := &b.moved
	b.clamped.pop(it)
	it.Time = justBelow(b.w)
	it.Flags |= flags
	if flags&Forced != 0 {
		b.stats.forcedRecords++
	}
	b.emit(it)
	b.discharge(b.backlog[len(b.backlog)-1:])
}

// force raises W just above time and lets go of what that covers.
func (b *Buffer[P]) force(time int64) {
	live := &b.table.live
	if len(live.ids) > 0 {
		live.all[live.ids[0]].forced++
	}
	b.w = max(b.w, time+1)
	b.forcing = true
	b.settleNow()
	b.forcing = false
}

// enforceCap keeps C8 for the bytes held.
func (b *Buffer[P]) enforceCap() {
	b.settleNow()
	for b.bytes > b.opts.CapBytes {
		b.admitClamped(b.w)
		time, ok := b.cal.lowest()
		if b.clamped.len() > 0 {
			if c := b.clamped.first().Time; !ok || c < time {
				time = c
			}
		}
		b.stats.forcedCap++
		b.force(time)
	}
}
