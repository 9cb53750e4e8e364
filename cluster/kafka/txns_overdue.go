package kafka

import (
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// opening tells one transaction of an id from the next.
type opening struct {
	id            string
	producerID    int64
	epoch         int16
	startedMillis int64
}

// openings are since when this coordinator has known of each open transaction. A transaction's start is noted by the clock
// of the node that coordinated then. If that was ahead, or this node's is behind, the transaction would be open for as
// long as they differ, and hold back who reads what is committed. So one is overdue, too, that a coordinator has seen open
// for its timeout, by the clock that nobody sets.
type openings map[opening]time.Time

// note takes the transactions that there are now, and forgets all others.
func (o *openings) note(all []*metadata.Transaction) {
	now, next := time.Now(), openings{}
	for _, t := range all {
		if t.State != metadata.TxnOngoing {
			continue
		}
		at := openingOf(t)
		if next[at] = now; !(*o)[at].IsZero() {
			next[at] = (*o)[at]
		}
	}
	*o = next
}

func openingOf(t *metadata.Transaction) opening {
	return opening{t.ID, t.ProducerID, t.Epoch, t.StartedMillis}
}

// overdue says whether a transaction, which was noted, is open for longer than its client wanted, by either clock.
func (o openings) overdue(t *metadata.Transaction) bool {
	if t.State != metadata.TxnOngoing {
		return false
	}
	timeout := time.Duration(t.TimeoutMillis) * time.Millisecond
	return time.Since(time.UnixMilli(t.StartedMillis)) > timeout || time.Since(o[openingOf(t)]) > timeout
}
