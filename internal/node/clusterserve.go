package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/moves"
)

// The requests that `daybook cluster` makes of a running server, over the socket of its owner: /cluster/ and the name of
// the verb, with the question as JSON. An answer that is not 200 is a clusterRefusal.

// clusterRefusal says why a request was not carried out.
type clusterRefusal struct {
	Error string `json:"error"`
	// Asked says that the question is wrong, as opposed to the cluster's state.
	Asked bool `json:"asked,omitempty"`
}

// journalQuestion is about one journal of a stream.
type journalQuestion struct {
	Stream  string  `json:"stream"`
	Journal int32   `json:"journal"`         // unnumbered: the only one that the stream has
	Nodes   []int32 `json:"nodes,omitempty"` // move: where it is to be, the one that should lead it first
	Node    int32   `json:"node,omitempty"`  // transfer: who should lead it
}

// unnumbered stands for the only journal of a stream.
const unnumbered = -1

// transferAnswer says why a node gets a lead only later, if it does.
type transferAnswer struct {
	Later string `json:"later,omitempty"`
}

// moveAnswer says how many copies there were to be before.
type moveAnswer struct {
	Had int `json:"had,omitempty"`
}

// replicasQuestion asks for another number of replicas of a stream.
type replicasQuestion struct {
	Stream string `json:"stream"`
	Count  int    `json:"count"`
	Dry    bool   `json:"dry,omitempty"`
}

// rebalanceQuestion asks to spread the load.
type rebalanceQuestion struct {
	Dry bool `json:"dry,omitempty"`
}

// errAskNode refuses an observer's owner what only a node can do.
var errAskNode = errors.New("this is an observer, which is no node of the cluster: give the --data of a node, on its machine")

// clusterHandlers are the handlers by pattern.
func (s *store) clusterHandlers() map[string]http.HandlerFunc {
	if s.node.Observes() {
		return map[string]http.HandlerFunc{
			"POST /cluster/status": answering(func(ctx context.Context, _ struct{}) (any, error) { return s.node.Status(ctx) }),
			"POST /cluster/":       answering(func(context.Context, any) (any, error) { return nil, errAskNode }),
		}
	}
	return map[string]http.HandlerFunc{
		"POST /cluster/status":   answering(func(ctx context.Context, _ struct{}) (any, error) { return s.node.Status(ctx) }),
		"POST /cluster/move":     answering(upToDate(s, s.moveJournal)),
		"POST /cluster/transfer": answering(upToDate(s, s.transferJournal)),
		"POST /cluster/remove":   answering(upToDate(s, s.removeNode)),
		"POST /cluster/rebalance": answering(upToDate(s, func(ctx context.Context, q rebalanceQuestion) (any, error) {
			return s.node.Moves().Rebalance(ctx, q.Dry)
		})),
		"POST /cluster/replicas": answering(upToDate(s, func(ctx context.Context, q replicasQuestion) (any, error) {
			return s.node.Moves().Resize(ctx, q.Stream, q.Count, q.Dry)
		})),
	}
}

// answering is a handler that decodes a question and encodes what do answers.
func answering[Q any](do func(context.Context, Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var question Q
		var answer any
		d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
		d.DisallowUnknownFields()
		err := d.Decode(&question)
		if err != nil {
			err = fmt.Errorf("%w: reading the question: %w", ErrConfig, err)
		} else {
			answer, err = do(r.Context(), question)
		}
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusConflict)
			answer = clusterRefusal{Error: err.Error(), Asked: wronglyAsked(err)}
		}
		_ = json.NewEncoder(w).Encode(answer) // who asked has gone away
	}
}

// wronglyAsked says whether an error is the fault of the one who asked.
func wronglyAsked(err error) bool {
	for _, wrong := range []error{ErrConfig, errAskNode, metadata.ErrUnknownStream, metadata.ErrUnknownPartition, metadata.ErrUnknownMember, metadata.ErrInvalidReplication} {
		if errors.Is(err, wrong) {
			return true
		}
	}
	return false
}

// journalOf finds the stream of a question, whose journal has to be one of its, and gives it its number.
func (s *store) journalOf(q *journalQuestion) (*metadata.Stream, error) {
	stream, ok := s.node.Meta().Stream(q.Stream)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w %q", metadata.ErrUnknownStream, q.Stream)
	case q.Journal >= 0 && q.Journal < stream.Journals:
	case q.Journal == unnumbered && stream.Journals == 1:
		q.Journal = 0
	case q.Journal == unnumbered:
		return nil, fmt.Errorf("%w: stream %s has %d journals: name one, from %s/0 to %s/%d", ErrConfig, q.Stream, stream.Journals, q.Stream, q.Stream, stream.Journals-1)
	case stream.Journals == 1:
		return nil, fmt.Errorf("%w: stream %s has one journal, %s/0, for all its partitions", metadata.ErrUnknownPartition, q.Stream, q.Stream)
	default:
		return nil, fmt.Errorf("%w: stream %s has journals 0 to %d, which its %d partitions share: partition p is in journal p modulo %d",
			metadata.ErrUnknownPartition, q.Stream, stream.Journals-1, stream.Partitions, stream.Journals)
	}
	return stream, nil
}

// leaderPatience is how long a verb waits for a leader of the metadata: elections take seconds, and are over well before who
// asked gives up.
const leaderPatience = 10 * time.Second

// upToDate does something once this node knows all that was decided before.
func upToDate[Q any](s *store, do func(context.Context, Q) (any, error)) func(context.Context, Q) (any, error) {
	return func(ctx context.Context, question Q) (any, error) {
		waiting, cancel := context.WithTimeout(ctx, leaderPatience)
		defer cancel()
		if err := s.node.SyncMeta(waiting); err != nil {
			return nil, fmt.Errorf("the metadata has no leader, so nothing can be decided (daybook cluster status says why): %w", err)
		}
		return do(ctx, question)
	}
}

// moveJournal puts a journal onto other nodes.
func (s *store) moveJournal(ctx context.Context, q journalQuestion) (any, error) {
	stream, err := s.journalOf(&q)
	if err != nil {
		return nil, err
	}
	for i, id := range q.Nodes {
		if slices.Contains(q.Nodes[:i], id) {
			return nil, fmt.Errorf("%w: node %d is named twice", ErrConfig, id)
		}
		if err := s.takesCopies(id); err != nil {
			return nil, err
		}
	}
	return moveAnswer{stream.WantedOf(q.Journal)}, s.node.Moves().SetReplicas(ctx, stream.ID, q.Journal, q.Nodes)
}

// takesCopies says why a node can get no copies now.
func (s *store) takesCopies(id int32) error {
	for _, m := range s.node.Members() {
		if m.ID != id {
			continue
		}
		switch {
		case m.Leaving:
			return fmt.Errorf("%w: node %d is being taken out", metadata.ErrUnknownMember, id)
		case !s.node.Up(id):
			return fmt.Errorf("%w: nothing can be copied to node %d", moves.ErrMembersDown, id)
		}
		return nil
	}
	return s.known(id)
}

// known says that no node has the number, and which there are.
func (s *store) known(id int32) error {
	var ids []int32
	for _, m := range s.node.Members() {
		ids = append(ids, m.ID)
	}
	if slices.Contains(ids, id) {
		return nil
	}
	slices.Sort(ids)
	return fmt.Errorf("%w %d: the cluster has %s", metadata.ErrUnknownMember, id, nodesText(ids))
}

// removeNode empties a node and takes it out, one step at a time.
func (s *store) removeNode(ctx context.Context, r Removal) (any, error) {
	if err := s.known(r.Node); err != nil {
		return nil, err
	}
	return s.node.Moves().Remove(ctx, r)
}

// transferJournal makes a replica the one that leads, and should lead from now on.
func (s *store) transferJournal(ctx context.Context, q journalQuestion) (any, error) {
	stream, err := s.journalOf(&q)
	if err != nil {
		return nil, err
	}
	if err := s.known(q.Node); err != nil {
		return nil, err
	}
	if !s.node.Up(q.Node) {
		return nil, fmt.Errorf("%w: node %d can't lead", moves.ErrMembersDown, q.Node)
	}
	later, err := s.node.Prefer(ctx, stream.ID, q.Journal, q.Node)
	var a transferAnswer
	if later != nil {
		a.Later = later.Error()
	}
	if errors.Is(later, cluster.ErrNotLeader) { // its text is for those who asked the one that should lead
		a.Later = "nobody leads it at this moment, or its lead is being handed over already"
	}
	return a, err
}
