package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
)

// leader is who leads a partition, as far as this node knows: id -1 if nobody is known.
type leader struct{ id, epoch int32 }

// noLeader tells a client nothing.
var noLeader = leader{-1, -1}

// leaderBeside is what a client is told beside an error that means that it has asked the
// wrong node, so that it can go to the right one without asking who that is (KIP-951).
func (s *Server) leaderBeside(p *cluster.Partition, err error) leader {
	code := errorCode(err)
	if p == nil || code != kerr.NotLeaderForPartition.Code && code != kerr.FencedLeaderEpoch.Code {
		return noLeader
	}
	now := shownLeader(p)
	if now.id == s.node.ID() && code == kerr.NotLeaderForPartition.Code {
		if _, err := p.Bounds(); err != nil {
			return noLeader // it hands over, or does not serve yet
		}
	}
	if now.id < 0 {
		return noLeader
	}
	return now
}

// leaderless says that a client came to the wrong node and cannot be told the right one.
func leaderless(p *cluster.Partition, err error, now leader) bool {
	return p != nil && now == noLeader && errorCode(err) == kerr.NotLeaderForPartition.Code
}

// orphan is a batch that was refused as nobody is known to lead its partition.
type orphan struct {
	answer    *kmsg.ProduceResponseTopicPartition
	partition *cluster.Partition
}

// awaitLeaders waits for the leaders of a request's orphans, until LeaderWait after the first of them was refused.
// Requests behind it on the connection wait with it: their answers come later in any case, and they have not begun to wait
// later than this one by more than their client took to send them.
func (c *conn) awaitLeaders(ctx context.Context, w *answerWriter, p *produceCall) error {
	orphans, until := p.unled()
	if len(orphans) == 0 || p.acks == 0 {
		return nil
	}
	partitions := make([]*cluster.Partition, len(orphans))
	for i, o := range orphans {
		partitions[i] = o.partition
	}
	watch := cluster.NewWatch(partitions)
	defer watch.Close()
	over := time.NewTimer(time.Until(until))
	defer over.Stop()
	for !c.server.findLeaders(p, orphans) {
		if err := w.flush(); err != nil {
			return err
		}
		select {
		case <-watch.Changed():
		case <-over.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// findLeaders notes who leads the orphans' partitions now, and says whether all are known.
func (s *Server) findLeaders(p *produceCall, orphans []orphan) (all bool) {
	all = true
	for _, o := range orphans {
		now := s.leaderBeside(o.partition, cluster.ErrNotLeader)
		if all = all && now != noLeader; now != noLeader {
			p.tell(o.answer, now)
		}
	}
	return all
}

// lead compares the leader epoch that a client knows with the partition's, and refuses
// what another node leads.
func (s *Server) lead(p *cluster.Partition, known int32) error {
	id, current := p.Leader()
	if known >= 0 {
		known = termOf(p, known)
	}
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
