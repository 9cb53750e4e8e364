package kafka

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// listTransactions answers with the transactional ids there are.
func (s *Server) listTransactions(c *call, req *kmsg.ListTransactionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	for _, t := range s.node.Meta().Transactions() {
		age := time.Since(time.UnixMilli(t.StartedMillis))
		switch {
		case len(req.ProducerIDFilters) > 0 && !slices.Contains(req.ProducerIDFilters, t.ProducerID),
			len(req.StateFilters) > 0 && !slices.Contains(req.StateFilters, string(t.State)),
			c.version >= 1 && req.DurationFilterMillis >= 0 &&
				(t.StartedMillis == 0 || age < time.Duration(req.DurationFilterMillis)*time.Millisecond):
			continue
		}
		state := kmsg.NewListTransactionsResponseTransactionState()
		state.TransactionalID, state.ProducerID, state.TransactionState = t.ID, t.ProducerID, string(t.State)
		resp.TransactionStates = append(resp.TransactionStates, state)
	}
	return resp
}
