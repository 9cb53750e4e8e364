package reorder

// judge decides where a new record belongs.
func (b *Buffer[P]) judge(r *Record[P], stamp int64) {
	if r.Time < b.stats.lastIn {
		b.stats.inversionsIn++
	}
	b.stats.lastIn = r.Time
	id := b.producer(r)
	if !b.rules.plausible(r.Time, stamp) {
		b.implausible(r, id, stamp)
		return
	}
	s := b.table.source(id)
	b.measure(s, r.Time)
	s.lastStamp, s.assigned = stamp, false
	time := r.Time
	if b.rules.order == OrderSource && time < s.max {
		time = s.max // C3
	}
	if time < b.w { // C4: a tie with the watermark is on time
		b.lateRecord(b.item(r, id, stamp, r.Time), s)
		if s.at == none {
			b.join(id)
			b.raise()
		}
		return
	}
	if s.at == none {
		s.max = max(s.max, r.Time)
		b.join(id)
	} else if r.Time > s.max {
		s.max = r.Time
		b.table.live.raised(id)
	}
	b.table.max = max(b.table.max, r.Time)
	b.holdNew(r, id, stamp, time)
	b.raise()
}

// producer finds or registers the record's source.
func (b *Buffer[P]) producer(r *Record[P]) sourceID {
	part := &b.table.parts[r.Partition]
	if id, ok := part.find(r.Source); ok {
		return id
	}
	if b.table.crowded() {
		b.forget()
	}
	id := b.table.producer(r.Partition, r.Source)
	b.cal.rank = b.table.live.rank
	return id
}

// forget makes room in the table of sources.
func (b *Buffer[P]) forget() {
	if len(b.backlog) > 0 {
		return // its items still name their sources
	}
	b.settleNow()
	if len(b.backlog) == 0 {
		b.table.forget(b.w, func(id sourceID) bool { return b.clamped.holds(id) })
	}
}

func (b *Buffer[P]) item(r *Record[P], id sourceID, stamp, time int64) *Item[P] {
	fill(&b.scratch, r, id, stamp, time)
	return &b.scratch
}

func fill[P any](it *Item[P], r *Record[P], id sourceID, stamp, time int64) {
	it.Payload = r.Payload
	it.Time, it.Stamp, it.Position = time, stamp, r.Position
	it.Watermark = 0
	it.Partition, it.source, it.size = r.Partition, id, r.Size
	it.Kind, it.Flags = Main, 0
}

// join makes a source live. Its partition, if it is live only because it was
// assigned, has then been heard of and leaves the minimum.
func (b *Buffer[P]) join(id sourceID) {
	s := b.table.source(id)
	b.table.live.push(id)
	b.idleDue = min(b.idleDue, s.lastStamp+b.idleAfter)
	b.due = min(b.due, b.idleDue)
	if own := b.table.parts[s.partition].own; own != id {
		if o := b.table.source(own); o.assigned {
			o.assigned = false
			b.table.live.remove(own)
		}
	}
}

// raise keeps C4. The release bound follows in whole slots.
func (b *Buffer[P]) raise() {
	live := &b.table.live
	if len(live.ids) == 0 {
		return
	}
	m := live.all[live.ids[0]].max
	if m == MinTime || m-b.bound <= b.w {
		return
	}
	b.w = m - b.bound
	b.open = max(b.open, b.w&^(1<<b.cal.bits-1))
}

// holdNew does what hold does, without a copy on the way.
func (b *Buffer[P]) holdNew(r *Record[P], id sourceID, stamp, time int64) {
	it := b.cal.place(time, id)
	if it == nil {
		b.hold(b.item(r, id, stamp, time))
		return
	}
	fill(it, r, id, stamp, time)
	if b.ages.push(time, stamp, b.w) {
		b.expectHold(stamp)
	}
	b.account(it)
}

// hold puts a record that is on time into the buffer.
func (b *Buffer[P]) hold(it *Item[P]) {
	if b.ages.push(it.Time, it.Stamp, b.w) {
		b.expectHold(it.Stamp)
	}
	b.cal.add(it)
	b.account(it)
}

func (b *Buffer[P]) account(it *Item[P]) {
	b.table.parts[it.Partition].held.hold(it.Position)
	b.bytes += recordOverhead + int64(it.size)
	b.stats.held++
}

func (b *Buffer[P]) expectHold(stamp int64) {
	b.holdDue = min(b.holdDue, stamp+b.holdFor)
	b.due = min(b.due, b.holdDue)
}

// lateRecord keeps C7.
func (b *Buffer[P]) lateRecord(it *Item[P], s *source) {
	it.Watermark = b.w
	lateness := b.w - it.Time
	s.late++
	s.maxLateness = max(s.maxLateness, lateness)
	b.stats.late++
	b.stats.lateness.add(lateness)
	switch b.opts.Late {
	case Side:
		it.Kind = Late
		b.emit(it)
	case Pass:
		b.settleNow() // its elders first, whether or not the caller has settled
		it.Flags |= Passed
		b.emit(it)
	case Drop:
		b.stats.dropped++
	}
}

// implausible keeps C6. Such a record never enters M and does not keep its source
// live: a source that sends nothing else would hold the watermark for ever.
func (b *Buffer[P]) implausible(r *Record[P], id sourceID, stamp int64) {
	s := b.table.source(id)
	if b.rules.implausible == Side {
		s.quarantined++
		b.stats.quarantined++
		it := b.item(r, id, stamp, r.Time)
		it.Kind = Quarantine
		b.emit(it)
		return
	}
	s.clamped++
	b.stats.clamped++
	if b.rules.order == OrderSource {
		b.clampToSource(r, id, stamp)
	} else {
		b.clampToStamp(r, id, stamp)
	}
}

// clampToStamp gives the record t = J.
func (b *Buffer[P]) clampToStamp(r *Record[P], id sourceID, stamp int64) {
	it := b.item(r, id, stamp, stamp)
	it.Flags = Clamped
	if stamp < b.w {
		b.lateRecord(it, b.table.source(id))
		return
	}
	b.holdClamped(it)
	if len(b.table.live.ids) == 0 {
		b.allIdle()
	}
}

// holdClamped keeps a record with t = J apart, see clampQueue.
func (b *Buffer[P]) holdClamped(it *Item[P]) {
	b.clamped.push(it, b.table.live.rank)
	b.account(it)
	b.expectHold(it.Stamp)
}

// clampToSource puts the record right behind its predecessor, because J in place
// of a lower event time would push everything that follows in its source up to J.
// If the predecessor has left, the record leaves at once behind all that has.
func (b *Buffer[P]) clampToSource(r *Record[P], id sourceID, stamp int64) {
	s := b.table.source(id)
	if s.max != MinTime && s.max >= b.w {
		it := b.item(r, id, stamp, s.max)
		it.Flags = Clamped
		b.hold(it)
		return
	}
	b.settleNow()
	it := b.item(r, id, stamp, justBelow(b.w))
	it.Flags = Clamped
	b.emit(it)
}

// justBelow is the order time of a clamped record that leaves before its time.
func justBelow(w int64) int64 {
	if w == MinTime {
		return MinTime
	}
	return w - 1
}
