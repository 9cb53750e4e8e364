package cluster

import (
	"context"
	"sync"

	"github.com/daybook-data/daybook/cluster/metadata"
)

const producerIDBlock = 1000

// producerIDs hands out ids of a block that the metadata has reserved: an id
// costs a write only once in a block. Ids of a block that a stop cuts short are
// never used.
type producerIDs struct {
	mu        sync.Mutex
	next, end int64
}

// NextProducerID returns an id that no producer has had.
func (n *Node) NextProducerID(ctx context.Context) (int64, error) {
	if id, ok := n.producerIDs.take(); ok {
		return id, nil
	}
	v, err := n.proposer.propose(ctx, metadata.Command{ReserveProducerIDs: &metadata.ReserveProducerIDs{Count: producerIDBlock}})
	if err != nil {
		return -1, err
	}
	return n.producerIDs.refill(v.(int64)), nil
}

func (p *producerIDs) take() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == p.end {
		return 0, false
	}
	p.next++
	return p.next - 1, true
}

// refill takes over a fresh block and returns its first id. If two callers have
// each reserved one, the rest of the first is dropped.
func (p *producerIDs) refill(first int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.end = first+1, first+producerIDBlock
	return first
}
