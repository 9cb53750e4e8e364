package metadata

import (
	"maps"
	"slices"
	"strings"
)

// TxnState is where a transactional id stands. The names are Kafka's.
type TxnState string

// A transactional id goes Empty -> Ongoing -> Prepare* -> Complete* -> Ongoing.
// Prepare* is the decision: once it is in the log the markers will be written,
// by this node or by the next that opens the directory.
const (
	TxnEmpty          TxnState = "Empty"
	TxnOngoing        TxnState = "Ongoing"
	TxnPrepareCommit  TxnState = "PrepareCommit"
	TxnPrepareAbort   TxnState = "PrepareAbort"
	TxnCompleteCommit TxnState = "CompleteCommit"
	TxnCompleteAbort  TxnState = "CompleteAbort"
)

// Transaction is the state of one transactional id.
type Transaction struct {
	ID         string `json:"id"`
	ProducerID int64  `json:"producer_id"`
	Epoch      int16  `json:"epoch"`
	// LastEpoch is the epoch before the last bump, or -1. A client that did not
	// see the answer to its bump comes again with it.
	LastEpoch int16 `json:"last_epoch"`
	// PreviousID is the producer id before this one, if its epochs were used up.
	PreviousID    int64             `json:"previous_id,omitempty"`
	TimeoutMillis int32             `json:"timeout_ms"`
	State         TxnState          `json:"state"`
	Partitions    []StreamPartition `json:"partitions,omitempty"`
	Groups        []string          `json:"groups,omitempty"`
	StartedMillis int64             `json:"started_ms,omitempty"`
	// UpdatedMillis is when the state was last changed, in Unix milliseconds.
	UpdatedMillis int64 `json:"updated_ms"`
	// Revision counts the changes, so that two coordinators cannot both act on
	// the same state.
	Revision int64 `json:"revision"`
}

// Has reports whether the transaction covers the partition.
func (t *Transaction) Has(p StreamPartition) bool { return slices.Contains(t.Partitions, p) }

// Decided reports whether markers are due.
func (t *Transaction) Decided() bool {
	return t.State == TxnPrepareCommit || t.State == TxnPrepareAbort
}

// clone returns a copy that shares nothing.
func (t *Transaction) clone() *Transaction {
	c := *t
	c.Partitions = slices.Clone(t.Partitions)
	c.Groups = slices.Clone(t.Groups)
	return &c
}

// PutTransaction replaces a transactional id's state if its revision still is
// the one the change was made from (0 for a new id).
type PutTransaction struct {
	Transaction Transaction `json:"transaction"`
	From        int64       `json:"from"`
}

// ReserveProducerIDs takes that many producer ids out of those that are left.
type ReserveProducerIDs struct {
	Count int64 `json:"count"`
}

// reserveProducerIDs hands out a block of ids that nobody else gets.
func (m *State) reserveProducerIDs(c *ReserveProducerIDs) Result {
	first := m.nextProducerID
	m.nextProducerID += c.Count
	return Result{Value: first}
}

func (m *State) putTransaction(c *PutTransaction) Result {
	var revision int64
	old, ok := m.transactions[c.Transaction.ID]
	if ok {
		revision = old.Revision
	}
	if revision != c.From {
		return Result{Err: ErrConflict}
	}
	t := c.Transaction.clone()
	t.Revision = revision + 1
	// Committing a transaction's offsets and ending it is one step of the log:
	// no crash can fall between them.
	if t.State == TxnCompleteCommit || t.State == TxnCompleteAbort {
		if ok {
			m.settle(old.Groups, old.ProducerID, t.State == TxnCompleteCommit)
		}
		t.Partitions, t.Groups, t.StartedMillis = nil, nil, 0
	}
	m.transactions[t.ID] = t
	return Result{Value: t}
}

// ForgetTransaction drops a transactional id that nobody uses any more.
type ForgetTransaction struct {
	ID   string `json:"id"`
	From int64  `json:"from"` // revision
}

func (m *State) forgetTransaction(c *ForgetTransaction) Result {
	t, ok := m.transactions[c.ID]
	switch {
	case !ok:
		return Result{Err: ErrUnknownTransaction}
	case t.Revision != c.From:
		return Result{Err: ErrConflict}
	case t.State == TxnOngoing || t.Decided():
		return Result{Err: ErrTransactionState}
	}
	delete(m.transactions, c.ID)
	return Result{}
}

// Transaction returns the state of a transactional id. Do not change it.
func (m *State) Transaction(id string) (*Transaction, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t, ok := m.transactions[id]
	return t, ok
}

// Transactions returns all transactional ids, sorted. Do not change them.
func (m *State) Transactions() []*Transaction {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.transactions), func(a, b *Transaction) int {
		return strings.Compare(a.ID, b.ID)
	})
}
