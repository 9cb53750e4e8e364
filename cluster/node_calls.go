package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/strictjson"
)

// The kinds of calls between nodes. They keep their numbers.
const (
	callApply   uint8 = 1  // a metadata entry, to the metadata's leader; answered with an applyAnswer
	callSync    uint8 = 2  // answered with the entry up to which everything that was acknowledged is applied
	callMarker  uint8 = 3  // a markerCall, to the journal's leader
	callLeads   uint8 = 4  // a leadsCall: what the caller leads
	callStalled uint8 = 5  // the caller's disk does not answer: take over what it leads
	callJournal uint8 = 6  // a transferCall, to the journal's leader
	callReport  uint8 = 7  // a reportCall; answered with a status.Report
	callCopy    uint8 = 8  // a copyCall: from a copy of a journal to another one; answered with a copyAnswer
	callFresh   uint8 = 9  // a metadata.StreamJournal, to the journal's leader; answered with a freshAnswer
	callWhere   uint8 = 10 // answered with a whereAnswer
)

// callAnswer is the body of every answer: a value, or an error that keeps its meaning.
type callAnswer struct {
	Error *metadata.WireError `json:"error,omitempty"`
	Value json.RawMessage     `json:"value,omitempty"`
	// Removed says that the caller is no node of the cluster any more.
	Removed bool `json:"removed,omitempty"`
}

// handle answers the calls of other nodes. Those that come while this one still opens wait: others call it as soon as
// it can be reached, as they did before it was restarted.
func (n *Node) handle(ctx context.Context, from string, kind uint8, body []byte) ([]byte, error) {
	select {
	case <-n.answering:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if id := metadata.NodeAt(raft.ServerAddress(from)); n.meta.Removed(id) {
		return json.Marshal(callAnswer{Error: wireErrors().Encode(metadata.ErrRemoved), Removed: true})
	}
	var value any
	var err error
	switch kind {
	case callApply:
		value, err = n.answerApply(ctx, body)
	case callSync:
		value, err = n.answerSync(ctx)
	case callMarker:
		err = n.answerMarker(ctx, body)
	case callLeads:
		err = n.leads.heard(from, body)
	case callStalled:
		n.trans.Failover(from)
	case callJournal:
		err = n.answerJournal(body)
	case callCopy:
		value, err = n.answerCopy(body)
	case callFresh:
		value, err = n.answerFresh(body)
	case callWhere:
		value = n.answerWhere()
	case callReport:
		value, err = n.answerReport(body)
	default:
		err = fmt.Errorf("call of kind %d is not known to this node: it runs an older build", kind)
	}
	if err != nil {
		return json.Marshal(callAnswer{Error: wireErrors().Encode(err)})
	}
	if value == nil {
		return []byte("{}"), nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(callAnswer{Value: encoded})
}

// callNode asks another node, and decodes what it answers into value, which may be nil.
func (n *Node) callNode(ctx context.Context, node int32, kind uint8, body []byte, value any) error {
	b, err := n.trans.Call(ctx, metadata.NodeName(node), kind, body)
	if err != nil {
		return fmt.Errorf("asking node %d: %w", node, err)
	}
	var a callAnswer
	if err := strictjson.Decode(b, &a); err != nil {
		return fmt.Errorf("reading the answer of node %d: %w", node, err)
	}
	if a.Error != nil {
		if a.Removed {
			n.noteRemoved(fmt.Sprintf("node %d says so", node))
		}
		return fmt.Errorf("node %d: %w", node, wireErrors().Decode(a.Error))
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(a.Value, value)
}

// askNode is callNode with a question that is encoded.
func (n *Node) askNode(ctx context.Context, node int32, kind uint8, question, value any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return n.callNode(ctx, node, kind, body, value)
}

var _ transport.Handler = (*Node)(nil).handle
