package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/internal/strictjson"
	"github.com/daybook-data/daybook/storage"
)

// freshWithin is how long a strong read away from the leader may wait for what it has to know.
const freshWithin = 10 * time.Second

// freshAnswer is up to which position of its log a journal was acknowledged when its leader, who confirmed its lead, was
// asked.
type freshAnswer struct {
	Position uint64 `json:"position"`
}

// fresh returns a journal of which everything is shown that was acknowledged before the call, whoever leads it: where this
// node does not, the leader says up to where that is, and the copy here is waited for. An observer shows what it has.
func (n *Node) fresh(ctx context.Context, h *journalHandle) (*storage.Journal, error) {
	j, err := h.reader(n.Observes())
	if n.trans == nil || !errors.Is(err, ErrNotLeader) {
		return j, err
	}
	g, err := h.open()
	if errors.Is(err, ErrNotLeader) {
		return nil, n.elsewhere(h)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, freshWithin)
	defer cancel()
	at, err := n.askFresh(ctx, h)
	if err == nil {
		err = g.Journal().WaitVisible(ctx, at)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %d cannot be read here as it is now: %w", h.number, err)
	}
	return g.Journal(), nil
}

// elsewhere says which nodes have a journal.
func (n *Node) elsewhere(h *journalHandle) error {
	s, ok := n.meta.StreamByID(h.stream)
	if !ok {
		return metadata.ErrUnknownStream
	}
	return fmt.Errorf("%w: journal %d of stream %s is not on node %d: ask node %v", ErrNotLeader, h.number, s.Name, n.id, metadata.NodesOf(s.ReplicasOf(h.number)))
}

// askFresh asks who leads until somebody answers who does.
func (n *Node) askFresh(ctx context.Context, h *journalHandle) (uint64, error) {
	for {
		var a freshAnswer
		leader, _ := h.leader()
		err := error(ErrNotLeader)
		switch leader {
		case -1:
		case n.id:
			a, err = n.freshHere(h)
		default:
			err = n.askNode(ctx, leader, callFresh, h.key(), &a)
		}
		if err == nil {
			return a.Position, nil
		}
		if !again(err) || !retry.Pause(ctx, retryPause) {
			return 0, err
		}
	}
}

// freshHere says up to where a journal was acknowledged, if this node leads it.
func (n *Node) freshHere(h *journalHandle) (a freshAnswer, err error) {
	j, err := h.reader(false)
	if err != nil {
		return a, err
	}
	return freshAnswer{j.Visible().Position}, nil
}

// answerFresh answers another node that wants to read strongly.
func (n *Node) answerFresh(body []byte) (a freshAnswer, err error) {
	var k metadata.StreamJournal
	if err := strictjson.Decode(body, &k); err != nil {
		return a, err
	}
	h, err := n.journals.get(k)
	if err != nil {
		return a, err
	}
	return n.freshHere(h)
}
