package reorder

import "fmt"

// A Merge brings the records of several partitions into canonical order (C1): by
// append stamp, then partition name, then position. A record comes out once no
// other partition can still bring an earlier one: each has a record waiting, or a
// frontier above, or has ended. It is a pure value like Buffer, and not safe for
// concurrent use.
type Merge[R any] struct {
	parts  []mergeQueue[R]
	byName map[string]Partition
	heads  []Partition // binary heap of the partitions that have a record waiting
	// open are the partitions that could bring an earlier record: those with nothing
	// waiting that have not ended.
	open []Partition
}

type mergeQueue[R any] struct {
	name  string
	items []merged[R]
	head  int
	// stamp is the running maximum of what was pushed, frontier what later records
	// are known to reach; every later stamp is at least the greater of the two.
	stamp, frontier int64
	next            int64 // lowest position that may be pushed
	ended           bool
	revoked         bool
}

type merged[R any] struct {
	stamp, position int64
	record          R
}

func (q *mergeQueue[R]) waiting() bool  { return q.head < len(q.items) }
func (q *mergeQueue[R]) reaches() int64 { return max(q.stamp, q.frontier) }

// NewMerge returns a Merge without partitions.
func NewMerge[R any]() *Merge[R] {
	return &Merge[R]{byName: map[string]Partition{}}
}

// Assign registers a partition. stamp is the running maximum of its stamps so far:
// PartitionState.SeekStamp, or MinTime at the start. Handles are dense in the order
// of assignment; a name that was revoked gets its former handle.
func (m *Merge[R]) Assign(name string, stamp int64) Partition {
	p, ok := m.byName[name]
	if ok && !m.parts[p].revoked {
		return p
	}
	if !ok {
		p = Partition(len(m.parts))
		m.parts = append(m.parts, mergeQueue[R]{})
		m.byName[name] = p
	}
	m.parts[p] = mergeQueue[R]{name: name, stamp: stamp, frontier: MinTime, next: MinTime}
	m.open = append(m.open, p)
	return p
}

// Revoke forgets a partition and what waits in it.
func (m *Merge[R]) Revoke(p Partition) {
	q := &m.parts[p]
	*q = mergeQueue[R]{name: q.name, revoked: true}
	m.rebuild()
}

// rebuild sorts the partitions anew into those with and without a record.
func (m *Merge[R]) rebuild() {
	m.heads, m.open = m.heads[:0], m.open[:0]
	for i := range m.parts {
		switch q := &m.parts[i]; {
		case q.revoked:
		case q.waiting():
			m.heads = append(m.heads, Partition(i))
			m.up(len(m.heads) - 1)
		case !q.ended:
			m.open = append(m.open, Partition(i))
		}
	}
}

// Push adds the next record of a partition. A stamp below the partition's running
// maximum counts as that. The error is a *PositionError if position does not rise,
// or tells that the partition has ended; the record is then not taken.
func (m *Merge[R]) Push(p Partition, stamp, position int64, record R) error {
	q := &m.parts[p]
	if q.ended || q.revoked {
		return fmt.Errorf("record %d pushed into partition %s after its end", position, q.name)
	}
	if position < q.next {
		return &PositionError{q.name, position, q.next}
	}
	q.next = position + 1
	q.stamp = max(q.stamp, stamp)
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, merged[R]{q.stamp, position, record})
	if len(q.items)-q.head == 1 {
		m.close(p)
		m.heads = append(m.heads, p)
		m.up(len(m.heads) - 1)
	}
	return nil
}

// SetFrontier tells that every later record of a partition has a stamp of at least
// stamp. A frontier never falls.
func (m *Merge[R]) SetFrontier(p Partition, stamp int64) {
	q := &m.parts[p]
	q.frontier = max(q.frontier, stamp)
}

// End tells that a partition brings no more records.
func (m *Merge[R]) End(p Partition) {
	m.parts[p].ended = true
	m.close(p)
}

// close takes p out of open.
func (m *Merge[R]) close(p Partition) {
	for i, o := range m.open {
		if o == p {
			m.open[i] = m.open[len(m.open)-1]
			m.open = m.open[:len(m.open)-1]
			return
		}
	}
}

// A MergedRecord is a record in its canonical place.
type MergedRecord[R any] struct {
	Partition Partition
	Position  int64
	Stamp     int64 // after the running maximum
	Record    R
}

// Pop takes the next record, if it is settled which one that is.
func (m *Merge[R]) Pop() (MergedRecord[R], bool) {
	if len(m.heads) == 0 {
		return MergedRecord[R]{}, false
	}
	p := m.heads[0]
	q := &m.parts[p]
	first := &q.items[q.head]
	for _, o := range m.open {
		other := &m.parts[o]
		if at := other.reaches(); at < first.stamp || at == first.stamp && other.name < q.name {
			return MergedRecord[R]{}, false
		}
	}
	out := MergedRecord[R]{p, first.position, first.stamp, first.record}
	*first = merged[R]{}
	q.head++
	if q.waiting() {
		m.down()
		return out, true
	}
	q.items, q.head = q.items[:0], 0
	m.heads[0] = m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	m.down()
	if !q.ended {
		m.open = append(m.open, p)
	}
	return out, true
}

// Frontier returns a stamp that no later record from Pop falls below: what to give
// to Buffer.Advance. It is MaxTime when all partitions have ended and are drained,
// MinTime when nothing is known.
func (m *Merge[R]) Frontier() int64 {
	least := MaxTime
	if len(m.parts) == 0 {
		return MinTime
	}
	if len(m.heads) > 0 {
		q := &m.parts[m.heads[0]]
		least = q.items[q.head].stamp
	}
	for _, o := range m.open {
		least = min(least, m.parts[o].reaches())
	}
	return least
}

// Waiting returns how many records of a partition are queued. A caller bounds its
// memory by not reading on in a partition that is far ahead.
func (m *Merge[R]) Waiting(p Partition) int {
	q := &m.parts[p]
	return len(q.items) - q.head
}

// Missing returns the partitions without a queued record that hold back the next
// record, for status displays and for deciding what to read next. The slice is
// new.
func (m *Merge[R]) Missing() []Partition {
	var out []Partition
	if len(m.heads) == 0 {
		return append(out, m.open...)
	}
	q := &m.parts[m.heads[0]]
	first := q.items[q.head].stamp
	for _, o := range m.open {
		if m.parts[o].reaches() <= first {
			out = append(out, o)
		}
	}
	return out
}

// less is the canonical order of two partitions' first records.
func (m *Merge[R]) less(a, b Partition) bool {
	x, y := &m.parts[a], &m.parts[b]
	s, t := x.items[x.head].stamp, y.items[y.head].stamp
	return s < t || s == t && x.name < y.name
}

func (m *Merge[R]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !m.less(m.heads[i], m.heads[parent]) {
			return
		}
		m.heads[i], m.heads[parent] = m.heads[parent], m.heads[i]
		i = parent
	}
}

func (m *Merge[R]) down() {
	i, n := 0, len(m.heads)
	for {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && m.less(m.heads[child+1], m.heads[child]) {
			child++
		}
		if !m.less(m.heads[child], m.heads[i]) {
			return
		}
		m.heads[i], m.heads[child] = m.heads[child], m.heads[i]
		i = child
	}
}
