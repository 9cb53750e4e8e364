package sim_test

import (
	"math/rand"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
)

// askEnds asks a machine's member for the ends of partitions, as ListOffsets does: whoever tells them as a leader tells
// no end that lacks what any leader had acknowledged before it was asked.
func (w *world) askEnds(m *machine, rng *rand.Rand) {
	for w.rest(time.Duration(rng.Int63n(int64(100 * time.Millisecond)))) {
		p := m.process()
		if p == nil {
			continue
		}
		if g := p.journal.Load(); g != nil && g.Leads() {
			w.checkEnds(p, g)
		}
	}
}

func (w *world) checkEnds(p *process, g *raftgroup.Group) {
	least := w.facts.ends()
	if err := g.ConfirmSince(time.Now()); err != nil {
		return
	}
	for part := range uint32(partitions) {
		if _, end := g.Journal().Bounds(part); end < least[part] && !ended(p, g) {
			w.violated("%s, which leads in term %d, tells that partition %d ends at %d: what lies before %d was acknowledged before it was asked", p.m.id, g.Term(), part, end, least[part])
		}
	}
}

// ends are behind what was acknowledged.
func (f *facts) ends() (at [partitions]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}
