package reorder

// ages finds the record that was held longest without a list of all records.
//
// A record that arrived later with a lower or equal order time leaves no later
// than the earlier one, so it is never the oldest: only records whose order time
// is above that of every earlier one are kept. The queue therefore rises in both
// stamp and order time, and its head is the oldest record still held.
type ages struct {
	queue []age
	head  int
}

type age struct{ time, stamp int64 }

// push notes a record. It reports whether the record is now the oldest.
func (a *ages) push(time, stamp, watermark int64) bool {
	a.prune(watermark)
	n := len(a.queue)
	if n > a.head {
		if time > a.queue[n-1].time {
			a.grow(age{time, stamp})
		}
		return false
	}
	a.queue, a.head = append(a.queue[:0], age{time, stamp}), 0
	return true
}

// grow appends, reusing the room of what left once it is half of the queue.
func (a *ages) grow(e age) {
	if len(a.queue) == cap(a.queue) && a.head > len(a.queue)/2 {
		n := copy(a.queue, a.queue[a.head:])
		a.queue, a.head = a.queue[:n], 0
	}
	a.queue = append(a.queue, e)
}

// oldest forgets everything below the watermark and returns the head.
func (a *ages) oldest(watermark int64) (age, bool) {
	a.prune(watermark)
	if a.head == len(a.queue) {
		a.queue, a.head = a.queue[:0], 0
		return age{}, false
	}
	return a.queue[a.head], true
}

func (a *ages) prune(watermark int64) {
	for a.head < len(a.queue) && a.queue[a.head].time < watermark {
		a.head++
	}
}

func (a *ages) clear() { a.queue, a.head = a.queue[:0], 0 }
