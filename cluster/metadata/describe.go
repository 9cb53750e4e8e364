package metadata

import (
	"maps"
	"slices"
)

// Description is what an observer is told of the metadata.
type Description struct {
	Cluster string `json:"cluster_id"`
	// Members are the nodes' addresses; an observer tells none: who pulls from it is to leave the nodes alone.
	Members map[int32]string `json:"members,omitempty"`
	Streams []*Stream        `json:"streams,omitempty"`
	Access  *accessImage     `json:"access"`
}

// Describe returns what observers are told, and up to which entries of which metadata that goes.
func (m *State) Describe() (d Description, applied, mirrored uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d = Description{Cluster: m.clusterID, Members: map[int32]string{}, Access: &accessImage{m.sortedUsers(), m.sortedACLs()}}
	for id, s := range m.members {
		if s.Address != "" {
			d.Members[id] = s.Address
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.streams)) {
		told := *m.streams[name]
		told.Placement, told.Leaving, told.Founders, told.Births, told.Removed, told.Wanted = nil, nil, nil, 0, nil, nil
		d.Streams = append(d.Streams, &told)
	}
	return d, m.applied, m.mirrored
}
