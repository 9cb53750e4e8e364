package metadata

import "slices"

// TxnJoin takes partitions and groups into a producer's transaction, which it begins
// if none is open.
type TxnJoin struct {
	ID         string `json:"id"`
	ProducerID int64  `json:"producer_id"`
	Epoch      int16  `json:"epoch"`

	Partitions []StreamPartition `json:"partitions,omitempty"`
	Groups     []string          `json:"groups,omitempty"`
	// Known only asks whether all of that is in the open transaction already.
	Known bool `json:"known,omitempty"`
	// NowMillis is when it was proposed, in Unix milliseconds.
	NowMillis int64 `json:"now_ms"`
}

// joinTransaction decides by the state that the log gives when the command's turn
// comes: whoever proposes it, on whichever node, need not know the present one.
func (m *State) joinTransaction(c *TxnJoin) Result {
	t, ok := m.transactions[c.ID]
	switch {
	case !ok || t.ProducerID != c.ProducerID:
		return Result{Err: ErrUnknownTransaction}
	case t.Epoch != c.Epoch:
		return Result{Err: ErrProducerFenced}
	case t.Decided():
		return Result{Err: ErrConflict}
	case t.Covers(c.Partitions, c.Groups):
		return Result{Value: t}
	case c.Known:
		return Result{Err: ErrTransactionState}
	}
	next := t.clone()
	if t.State != TxnOngoing {
		next.State, next.StartedMillis = TxnOngoing, c.NowMillis
	}
	for _, p := range c.Partitions {
		if !next.Has(p) {
			next.Partitions = append(next.Partitions, p)
		}
	}
	for _, g := range c.Groups {
		if !slices.Contains(next.Groups, g) {
			next.Groups = append(next.Groups, g)
		}
	}
	next.UpdatedMillis = c.NowMillis
	next.Revision++
	m.transactions[next.ID] = next
	return Result{Value: next}
}

// Covers reports whether the transaction is open and has all of these in it.
func (t *Transaction) Covers(partitions []StreamPartition, groups []string) bool {
	return t.State == TxnOngoing &&
		!slices.ContainsFunc(partitions, func(p StreamPartition) bool { return !t.Has(p) }) &&
		!slices.ContainsFunc(groups, func(g string) bool { return !slices.Contains(t.Groups, g) })
}
