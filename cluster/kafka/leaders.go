package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster"
)

// leader is who leads a partition, as far as this node knows: id -1 if nobody is known.
type leader struct{ id, epoch int32 }

// noLeader tells a client nothing.
var noLeader = leader{-1, -1}

// leaderBeside is what a client is told beside an error that means that it has asked the
// wrong node, so that it can go to the right one without asking who that is (KIP-951).
func leaderBeside(p *cluster.Partition, err error) leader {
	code := errorCode(err)
	if p == nil || code != kerr.NotLeaderForPartition.Code && code != kerr.FencedLeaderEpoch.Code {
		return noLeader
	}
	id, epoch := p.Leader()
	if id < 0 {
		return noLeader
	}
	return leader{id, epoch}
}

// lead compares the leader epoch that a client knows with the partition's, and refuses
// what another node leads.
func (s *Server) lead(p *cluster.Partition, known int32) error {
	id, current := p.Leader()
	switch {
	case known >= 0 && known < current:
		return kerr.FencedLeaderEpoch
	case known >= 0 && known > current:
		return kerr.UnknownLeaderEpoch
	case id != s.node.ID():
		return cluster.ErrNotLeader
	}
	return nil
}
