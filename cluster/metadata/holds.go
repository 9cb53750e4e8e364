package metadata

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Hold is what keeps a partition's records from an offset on: the position of a group that a pipeline has registered, or
// a source's checkpoint.
type Hold struct {
	Group     string
	Partition int32
	Offset    int64
}

// Holds returns what holds a stream's records, by partition and group.
func (m *State) Holds(stream StreamID) (all []Hold) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for name, g := range m.groups {
		if !strings.HasPrefix(name, HoldingGroupPrefix) {
			continue
		}
		for p, o := range g.offsets {
			if p.Stream == stream {
				all = append(all, Hold{name, p.Partition, o.Offset})
			}
		}
	}
	slices.SortFunc(all, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Group, b.Group))
	})
	return all
}

// Furthest is the group that has committed the highest position of a partition, of those that read all of it.
func (m *State) Furthest(p StreamPartition) (group string, offset int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		if o, ok := m.groups[name].offsets[p]; ok && o.Offset > offset {
			group, offset = name, o.Offset
		}
	}
	return group, offset
}
