package cluster

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/retry"
)

// markerCall asks the leader of a partition to end a producer's transaction there.
type markerCall struct {
	Partition  metadata.StreamPartition `json:"partition"`
	ProducerID int64                    `json:"producer_id"`
	Epoch      int16                    `json:"epoch"`
	Commit     bool                     `json:"commit"`
	Revision   uint64                   `json:"revision"`
}

// WriteMarker ends a producer's transaction in a partition, wherever its leader is, and returns when the marker is
// stored. It may be repeated: revision is that of the transaction's state, by which the journal knows a repetition. While
// no leader can be reached it goes on trying until ctx ends.
func (n *Node) WriteMarker(ctx context.Context, key metadata.StreamPartition, producerID int64, epoch int16, commit bool, revision uint64) error {
	m := markerCall{key, producerID, epoch, commit, revision}
	for {
		err := n.tryMarker(ctx, m)
		if err == nil || n.trans == nil || ctx.Err() != nil || !again(err) {
			return err
		}
		if !retry.Pause(ctx, retryPause) {
			return err
		}
	}
}

// again says whether a request to a leader may succeed when it is made once more. What the leader refused stays refused.
func again(err error) bool {
	for _, refusal := range []error{metadata.ErrUnknownStream, metadata.ErrUnknownPartition, metadata.ErrProducerFenced, metadata.ErrTransactionState, ErrReadOnly, ErrClosed} {
		if errors.Is(err, refusal) {
			return false
		}
	}
	return true
}

func (n *Node) tryMarker(ctx context.Context, m markerCall) error {
	p, err := n.PartitionByKey(m.Partition)
	if err != nil {
		return err
	}
	leader, _ := p.Leader()
	switch leader {
	case n.id:
		result := make(chan error, 1)
		if err := p.appendMarker(ctx, m.ProducerID, m.Epoch, m.Commit, m.Revision, func(a Appended) { result <- a.Err }); err != nil {
			return err
		}
		return <-result
	case -1:
		return ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(ctx, forwardPatience)
	defer cancel()
	return n.askNode(ctx, leader, callMarker, m, nil)
}

// answerMarker writes a marker here, if this node leads.
func (n *Node) answerMarker(ctx context.Context, body []byte) error {
	var m markerCall
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	p, err := n.PartitionByKey(m.Partition)
	if err != nil {
		return err
	}
	if leader, _ := p.Leader(); leader != n.id {
		return ErrNotLeader
	}
	return n.tryMarker(ctx, m)
}
