package metadata

import (
	"cmp"
	"slices"
)

// RecoverCluster is what the metadata makes of a cluster that lost its majority for good and goes on with some of its
// nodes. The tool that the operator ran has put it into the log: nobody proposes it.
type RecoverCluster struct {
	Generation uint64 `json:"generation"`
	// Survivors are the nodes that go on. The others are no members any more.
	Survivors []int32            `json:"survivors"`
	Journals  []RecoveredJournal `json:"journals"`
}

// RecoveredJournal says which copy a journal goes on with. Journals without a copy are not named, and stay as they are:
// without a leader.
type RecoveredJournal struct {
	Stream  StreamID `json:"stream"`
	Journal int32    `json:"journal"`
	Base    Replica  `json:"base"`
	// Others are survivors that had a copy too: they get a new one.
	Others []int32 `json:"others,omitempty"`
}

// idsSkipped is how many producer ids are left out: the metadata that goes on may not know which were given last.
const idsSkipped = 1_000_000

func (m *State) recoverCluster(c *RecoverCluster) Result {
	for id := range m.members {
		if !slices.Contains(c.Survivors, id) {
			delete(m.members, id)
			delete(m.origins, id)
		}
	}
	for id, s := range m.members {
		stays := *s
		stays.Leaving = false
		m.members[id] = &stays
	}
	m.nextProducerID += idsSkipped
	for _, j := range c.Journals {
		if s, err := m.placedStream(j.Stream, j.Journal); err == nil {
			m.putStream(s.recovered(j))
		}
	}
	for _, s := range m.goingStreams() {
		m.confirmRemoval(s, 0) // the nodes that are gone need not confirm it
	}
	m.layoutChanged()
	return Result{}
}

// recovered is the stream with a journal that goes on with one copy.
func (s *Stream) recovered(j RecoveredJournal) *Stream {
	s.Births = max(s.Births, j.Base.Born)
	next := []Replica{j.Base}
	for _, node := range j.Others {
		s.Births++
		next = append(next, Replica{Node: node, Born: s.Births})
	}
	wanted := s.WantedOf(j.Journal)
	s.Placement[j.Journal], s.Leaving[j.Journal] = next, nil
	s.want(j.Journal, int32(wanted))
	return s
}

// goingStreams are the streams whose files are being removed.
func (m *State) goingStreams() (all []*Stream) {
	for _, s := range m.byID {
		if s.Deleting {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Stream) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	return all
}
