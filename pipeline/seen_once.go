package pipeline

import (
	"bytes"
	"slices"
	"time"
)

// seenOnce holds what the journal had behind the source's checkpoint. The source emits
// that again exactly once, so each position leaves when it is met.
//
// A source that reads from several places (files) may emit again in another order, and
// a process may be killed before it met all. So a checkpoint that is taken meanwhile has
// to make sure that a restart expects the rest again (see pending).
type seenOnce struct {
	set map[positionID]struct{}
	// met are the positions that came again since the last place at which the source
	// can go on; if it has to go on there, they come once more.
	met map[positionID]struct{}
	// tail lists, by partition, where in the stream the positions were found; carried are
	// those that came with the checkpoint instead.
	tail    map[int32][]seenAt
	carried []positionID
	// expected is until when positions are expected, counted from when one was met last;
	// what has not come again by then never will (a file that was deleted).
	expected time.Time
}

type seenAt struct {
	offset int64
	id     positionID
}

// expectRepeats is how long a source that emits may let what the journal already holds
// wait.
const expectRepeats = 10 * time.Minute

// maxPending is how many positions a checkpoint carries: 2 KiB.
const maxPending = 128

func newSeenOnce(carried []positionID) *seenOnce {
	s := &seenOnce{
		set: map[positionID]struct{}{}, met: map[positionID]struct{}{}, tail: map[int32][]seenAt{},
		carried: slices.Clone(carried),
	}
	for _, id := range carried {
		s.set[id] = struct{}{}
	}
	return s
}

func (s *seenOnce) note(r *Record) {
	id := idOf(r.Position)
	s.set[id] = struct{}{}
	s.tail[r.Partition] = append(s.tail[r.Partition], seenAt{r.Offset, id})
}

func (s *seenOnce) repeats(position string, _ int64) bool {
	if len(s.set) == 0 {
		return false
	}
	if s.expected.IsZero() {
		s.expected = time.Now().Add(expectRepeats)
	}
	id := idOf(position)
	if _, ok := s.set[id]; !ok {
		return false
	}
	delete(s.set, id)
	s.met[id] = struct{}{}
	s.expected = time.Now().Add(expectRepeats)
	return true
}

func (s *seenOnce) covered() { clear(s.met) }

func (s *seenOnce) pending() pending {
	if len(s.set) > 0 && !s.expected.IsZero() && time.Now().After(s.expected) {
		clear(s.set)
	}
	var p pending
	if len(s.set)+len(s.met) <= maxPending {
		for id := range s.set {
			p.ids = append(p.ids, id)
		}
		for id := range s.met {
			p.ids = append(p.ids, id)
		}
		slices.SortFunc(p.ids, func(a, b positionID) int { return bytes.Compare(a[:], b[:]) })
		return p
	}
	s.carried = slices.DeleteFunc(s.carried, func(id positionID) bool { return !s.waits(id) })
	p.ids, p.floor = slices.Clone(s.carried), map[int32]int64{}
	for partition, tail := range s.tail {
		for len(tail) > 0 && !s.waits(tail[0].id) {
			tail = tail[1:]
		}
		s.tail[partition] = tail
		if len(tail) > 0 {
			p.floor[partition] = tail[0].offset
		}
	}
	return p
}

// waits reports whether a restart would have to expect the position.
func (s *seenOnce) waits(id positionID) bool {
	if _, ok := s.set[id]; ok {
		return true
	}
	_, ok := s.met[id]
	return ok
}

func (s *seenOnce) len() int { return len(s.set) }
