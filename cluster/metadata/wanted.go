package metadata

import "slices"

// WantedOf is how many copies a journal is to have: as many as are placed, or more, where there were not so many nodes when
// it was placed, or a copy was given up for which there was no other.
func (s *Stream) WantedOf(journal int32) int {
	if int(journal) < len(s.Wanted) && s.Wanted[journal] > 0 {
		return int(s.Wanted[journal])
	}
	return len(s.ReplicasOf(journal))
}

// RoomFor is how many copies of a journal there should be now: as many as it is to have, as far as there are nodes.
func (s *Stream) RoomFor(journal int32, members []Member) int {
	nodes := 0
	for _, m := range members {
		if !m.Leaving {
			nodes++
		}
	}
	return max(min(s.WantedOf(journal), nodes), min(len(s.ReplicasOf(journal)), s.WantedOf(journal)))
}

// WantAll notes how many copies all journals of a new stream are to have, once they are placed.
func (s *Stream) WantAll(copies int32) {
	for j := range s.Journals {
		s.want(j, copies)
	}
}

// want notes how many copies a journal is to have. The stream is a copy, whose placement is already that of now.
func (s *Stream) want(journal, copies int32) {
	if copies == int32(len(s.ReplicasOf(journal))) {
		copies = 0
	}
	next := make([]int32, s.Journals)
	copy(next, s.Wanted)
	next[journal] = copies
	if !slices.ContainsFunc(next, func(n int32) bool { return n != 0 }) {
		next = nil
	}
	s.Wanted = next
}
