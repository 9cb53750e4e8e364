package kafka

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/storage"
)

// A consumer that says which rack it is in reads from a replica in the same one, if
// there is one that is not behind (KIP-392). It asks the leader, which names the
// replica; and comes back when that has an error for it.

// near returns the nodes in a rack that the connection's client can reach.
func (c *conn) near(rack string) (ids []int32) {
	if rack == "" {
		return nil
	}
	for _, b := range c.brokers() {
		if b.rack != nil && *b.rack == rack {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// nearer returns the replica that the client of a fetch should read from instead of
// this one, which leads; 0 if it is this one.
func (s *Server) nearer(p *cluster.Partition, r *fetchRequest) int32 {
	if len(r.near) == 0 || slices.Contains(r.near, s.node.ID()) {
		return 0
	}
	near := slices.DeleteFunc(slices.Sorted(slices.Values(p.InSync())), func(id int32) bool { return !slices.Contains(r.near, id) })
	if len(near) == 0 {
		return 0
	}
	return near[int(p.Key().Partition)%len(near)]
}

// mayFollow reports whether this node, which refuses as it does not lead, may answer all
// the same: as a replica near to the client, while it hears of a leader.
func (s *Server) mayFollow(p *cluster.Partition, r *fetchRequest, refused error) bool {
	if !errors.Is(refused, cluster.ErrNotLeader) || !slices.Contains(r.near, s.node.ID()) {
		return false
	}
	id, _ := p.Leader()
	return id >= 0 && slices.Contains(p.Replicas(), s.node.ID())
}

// read reads from what this node leads. An observer leads what it has: what is not here yet may be at another one.
func (s *Server) read(p *cluster.Partition, r cluster.ReadRequest) (cluster.Fetched, error) {
	if s.node.Observes() {
		return follow(p, r)
	}
	return p.Read(r)
}

// follow answers as a replica that the client wants to read from. One that is stuck sends it back: here it would wait
// for what others have long had. It names the leader as the replica to read from, as clients that are told that this
// node does not lead find that nothing has changed, and stay.
func (f *fetched) follow(p *cluster.Partition, r cluster.ReadRequest) {
	leader, _ := p.Leader()
	if leader < 0 || !p.Stuck() {
		f.data, f.err = follow(p, r)
		return
	}
	f.readFrom = leader
	f.data.Bounds, f.err = p.Known()
}

// follow reads what a replica knows to be committed. What the client wants may only not
// be here yet: that is no reason for it to start anew somewhere else.
func follow(p *cluster.Partition, r cluster.ReadRequest) (cluster.Fetched, error) {
	r.Follower = true
	f, err := p.Read(r)
	var outside *storage.RangeError
	if errors.As(err, &outside) && outside.Offset > outside.End {
		return f, kerr.OffsetNotAvailable
	}
	return f, err
}
