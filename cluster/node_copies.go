package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/strictjson"
)

// copyCall is a question from one copy of a journal to another.
type copyCall struct {
	metadata.StreamJournal
	Question json.RawMessage `json:"question"`
}

// nodeCopies reaches the other copies of a journal.
type nodeCopies struct {
	n *Node
	h *journalHandle
}

var _ raftgroup.Copies = nodeCopies{}

// Nodes implements Copies.
func (c nodeCopies) Nodes() (names []string) {
	s, ok := c.n.meta.StreamByID(c.h.stream)
	if !ok {
		return nil
	}
	for _, r := range append(s.LeavingOf(c.h.number), s.ReplicasOf(c.h.number)...) {
		if r.Node != c.n.id && c.n.Up(r.Node) {
			names = append(names, metadata.NodeName(r.Node))
		}
	}
	return names
}

// Ask implements Copies.
func (c nodeCopies) Ask(ctx context.Context, node string, question []byte) ([]byte, error) {
	body, err := json.Marshal(copyCall{c.h.key(), question})
	if err != nil {
		return nil, err
	}
	b, err := c.n.trans.Call(ctx, node, callCopy, body)
	if err != nil {
		return nil, fmt.Errorf("asking node %s: %w", node, err)
	}
	var a callAnswer
	if err := strictjson.Decode(b, &a); err != nil {
		return nil, fmt.Errorf("reading the answer of node %s: %w", node, err)
	}
	if a.Error != nil {
		return nil, fmt.Errorf("node %s: %w", node, wireErrors().Decode(a.Error))
	}
	return a.Value, nil
}

// answerCopy answers another node's copy of a journal.
func (n *Node) answerCopy(body []byte) (json.RawMessage, error) {
	var c copyCall
	if err := strictjson.Decode(body, &c); err != nil {
		return nil, err
	}
	h, err := n.journals.get(c.StreamJournal)
	if err != nil {
		return nil, err
	}
	g := h.opened()
	if g == nil {
		return nil, fmt.Errorf("journal %d of stream %s is not open on node %d", c.Journal, c.Stream, n.id)
	}
	return g.Answer(c.Question)
}
