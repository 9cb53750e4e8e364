package metadata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/raft"
)

// Origin says which entry of which node a metadata entry is. A node has one entry on its way at a time, and sends it
// again, as it was, until it hears what became of it: the state machine keeps the last one of each node, so that it takes
// effect once.
type Origin struct {
	Node int32 `json:"node"`
	// Start counts the starts of the node's process, Seq its entries since.
	Start uint64 `json:"start"`
	Seq   uint64 `json:"seq"`
}

// answered is a node's last entry and what it came to.
type answered struct {
	Origin
	results []Result
}

// answeredImage is answered in a snapshot.
type answeredImage struct {
	Origin  Origin       `json:"origin"`
	Results []WireResult `json:"results"`
}

// LastStart returns the latest start of a node that had an entry applied; 0 if none had.
func (m *State) LastStart(node int32) uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.origins[node].Start
}

// compare orders the entries of a node.
func (o Origin) compare(p Origin) int {
	return cmp.Or(cmp.Compare(o.Start, p.Start), cmp.Compare(o.Seq, p.Seq))
}

// applyEntry runs the commands of an entry unless it did before. The caller holds mu.
func (m *State) applyEntry(e *entry, term uint64) []Result {
	results := make([]Result, len(e.Commands))
	refuse := func(err error) []Result {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	if o := e.Origin; o != nil {
		if _, ok := m.members[o.Node]; !ok && len(m.members) > 0 {
			return refuse(fmt.Errorf("%w: node %d", ErrRemoved, o.Node))
		}
		if last, ok := m.origins[o.Node]; ok {
			switch c := o.compare(last.Origin); {
			case c == 0 && len(last.results) == len(results):
				return last.results
			case c <= 0: // it was overtaken: who sent it has long been answered, or is gone
				return refuse(ErrConflict)
			}
		}
	}
	for i, c := range e.Commands {
		results[i] = m.applyOne(c, term)
	}
	if o := e.Origin; o != nil {
		m.origins[o.Node] = answered{*o, results}
	}
	return results
}

func (m *State) originImages() (all []answeredImage) {
	for _, id := range slices.Sorted(maps.Keys(m.origins)) {
		a := m.origins[id]
		i := answeredImage{Origin: a.Origin}
		for _, r := range a.results {
			i.Results = append(i.Results, r.Wire())
		}
		all = append(all, i)
	}
	return all
}

// Applied returns the last log entry whose commands the state has.
func (m *State) Applied() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.applied
}

// AppliedTo returns a channel that is closed when the state has the commands of entries up to index, nil if it does.
// It may be closed before: look again.
func (m *State) AppliedTo(index uint64) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied >= index {
		return nil
	}
	if m.progress == nil {
		m.progress = make(chan struct{})
	}
	return m.progress
}

// moved notes that the state has the entry's commands. The caller holds mu.
func (m *State) moved(l *raft.Log) {
	m.applied = max(m.applied, l.Index)
	m.tellProgress()
}

func (m *State) tellProgress() {
	if m.progress != nil {
		close(m.progress)
		m.progress = nil
	}
}

// Changed is closed at the next change of streams, their placement, or members.
func (m *State) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.layout == nil {
		m.layout = make(chan struct{})
	}
	return m.layout
}

// layoutChanged tells who waits for Changed. The caller holds mu.
func (m *State) layoutChanged() {
	if m.layout != nil {
		close(m.layout)
		m.layout = nil
	}
}
