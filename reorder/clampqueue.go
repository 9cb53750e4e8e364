package reorder

// A clampQueue holds clamped records whose order time is their append stamp. They
// are kept apart from the calendar until the watermark has passed them, because
// one that has to leave early must not move the watermark: where old data are
// read, J is years above M, and W = J + 1 would make everything that follows late.
// As stamps rise, the queue is in order by itself.
type clampQueue[P any] struct {
	items []Item[P]
	head  int
}

func (q *clampQueue[P]) len() int { return len(q.items) - q.head }

func (q *clampQueue[P]) first() *Item[P] { return &q.items[q.head] }

// push keeps the total order among records with the same stamp.
func (q *clampQueue[P]) push(it *Item[P], rank []int32) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, *it)
	for i := len(q.items) - 1; i > q.head && before(&q.items[i], &q.items[i-1], rank); i-- {
		q.items[i], q.items[i-1] = q.items[i-1], q.items[i]
	}
}

// holds reports whether a record of a source is in the queue.
func (q *clampQueue[P]) holds(id sourceID) bool {
	for i := q.head; i < len(q.items); i++ {
		if q.items[i].source == id {
			return true
		}
	}
	return false
}

// pop moves the first item to out.
func (q *clampQueue[P]) pop(out *Item[P]) {
	*out = q.items[q.head]
	q.items[q.head] = Item[P]{}
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}
