package cluster

import (
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// Leader returns the node that leads the partition, -1 if none is known, and its epoch, which never goes back.
func (p *Partition) Leader() (node, epoch int32) {
	if !p.handle.all.several {
		return p.handle.all.self, p.LeaderEpoch()
	}
	return p.handle.leaderOf()
}

// LeaderEpoch is the epoch of the partition's leader, or -1 while its journal is
// not open.
func (p *Partition) LeaderEpoch() int32 {
	if g := p.handle.opened(); g != nil {
		return int32(g.Term())
	}
	return -1
}

// Replicas returns the nodes that have the partition, the one that should lead it first.
func (p *Partition) Replicas() []int32 {
	if p.handle.all.observes {
		return []int32{p.handle.all.self}
	}
	return metadata.NodesOf(p.stream.ReplicasOf(p.handle.number))
}

// InSync returns the replicas that have what the leader has, or nearly so. Where this node does not lead it is what the
// leader said last.
func (p *Partition) InSync() []int32 {
	all := p.handle.all
	if !all.several {
		return []int32{all.self}
	}
	if g := p.handle.opened(); g != nil && g.Serves() {
		if l, err := all.live(p.stream); err == nil {
			return all.inSync(l, p.handle, g)
		}
	}
	if l, ok := all.leads.get(p.handle.key()); ok {
		return slices.Clone(l.InSync)
	}
	return nil
}

// Stuck says that this replica has not got on with what its leader sent for so long that a reader should go elsewhere: its
// disk does not answer, or the machine has no time for it.
func (p *Partition) Stuck() bool {
	g := p.handle.opened()
	if g == nil {
		return false
	}
	return g.Busy() > g.Options().Timeout
}
