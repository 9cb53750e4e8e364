package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/storage"
)

const (
	// forwardPatience is how long one try to have an entry applied by another node may take.
	forwardPatience = 5 * time.Second
	// retryPause is how long the next try waits.
	retryPause = 30 * time.Millisecond
)

// applyAnswer is what a metadata entry came to on the node that led the metadata.
type applyAnswer struct {
	Index   uint64                `json:"index"`
	Results []metadata.WireResult `json:"results"`
	Fatal   string                `json:"fatal,omitempty"`
}

// nextOrigin names the next entry that this node proposes.
func (n *Node) nextOrigin() *metadata.Origin {
	if n.trans == nil {
		return nil
	}
	n.lastSeq++
	return &metadata.Origin{Node: n.id, Start: n.file.Get().Starts, Seq: n.lastSeq}
}

// applyMeta has one metadata entry applied, here or by the node that leads the metadata, and returns when this node's
// state has it too. It waits for as long as it takes: giving up would leave callers not knowing what became of their
// commands.
func (n *Node) applyMeta(data []byte) (any, error) {
	if n.trans == nil {
		return n.metaGroup.Apply(context.Background(), data)
	}
	for {
		v, err := n.applyOnce(data)
		if err == nil || storage.Refused(err) {
			return v, err
		}
		if ended := n.metaEnded(); ended != nil {
			return nil, ended
		}
		if n.removal.told() {
			return nil, n.removal.err
		}
		if !retry.Pause(n.ctx, retryPause) {
			return nil, fmt.Errorf("%w: %w", ErrClosed, err)
		}
	}
}

// metaEnded says that this node takes no part in the metadata any more and why, or nil while it does. What others agree on
// does not get here then: who asks this node has to be told to ask another one, as it cannot know what came of a command.
func (n *Node) metaEnded() error {
	why := cmp.Or(n.metaGroup.Err(), n.metaGroup.Journal().Err())
	if why == nil || errors.Is(why, storage.ErrClosed) {
		return nil
	}
	return fmt.Errorf("%w: node %d takes no part in the cluster's metadata: %w; ask another node until it was started again on a disk that works", ErrReadOnly, n.id, why)
}

// applyOnce tries to have an entry applied. After an error it may or may not have been.
func (n *Node) applyOnce(data []byte) (any, error) {
	leader := n.Controller()
	if leader == n.id {
		return n.metaGroup.Apply(context.Background(), data)
	}
	if leader < 0 {
		return nil, ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(n.ctx, forwardPatience)
	defer cancel()
	var a applyAnswer
	if err := n.callNode(ctx, leader, callApply, data, &a); err != nil {
		return nil, err
	}
	if err := n.waitApplied(n.ctx, a.Index); err != nil {
		return nil, err
	}
	if a.Fatal != "" {
		return errors.New(a.Fatal), nil
	}
	results := make([]metadata.Result, len(a.Results))
	for i, w := range a.Results {
		results[i] = w.Result()
	}
	return results, nil
}

// answerApply applies another node's entry, if this one leads.
func (n *Node) answerApply(ctx context.Context, data []byte) (applyAnswer, error) {
	v, index, err := n.metaGroup.ApplyIndexed(ctx, data)
	if err != nil {
		return applyAnswer{}, err
	}
	a := applyAnswer{Index: index}
	switch r := v.(type) {
	case []metadata.Result:
		for _, one := range r {
			a.Results = append(a.Results, one.Wire())
		}
	case error:
		a.Fatal = r.Error()
	}
	return a, nil
}

// waitApplied waits until this node's metadata has the commands of the entries up to index.
func (n *Node) waitApplied(ctx context.Context, index uint64) error {
	for {
		more := n.meta.AppliedTo(index)
		if more == nil {
			return nil
		}
		if err := n.meta.Err(); err != nil {
			return err
		}
		select {
		case <-more:
		case <-n.metaGroup.Done():
			return n.metaGroup.ClosedErr()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
