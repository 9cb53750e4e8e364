package kafka

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

var txnStates = []string{
	string(metadata.TxnEmpty), string(metadata.TxnOngoing), string(metadata.TxnPrepareCommit), string(metadata.TxnPrepareAbort),
	string(metadata.TxnCompleteCommit), string(metadata.TxnCompleteAbort),
}

// listTransactions answers with the transactional ids there are, if this node
// coordinates: clients ask all nodes, and put together what they hear.
func (s *Server) listTransactions(c *call, req *kmsg.ListTransactionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	named, err := namePattern(req.TransactionalIDPattern)
	if err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	switch _, err := s.coordinate(); {
	case errors.Is(err, kerr.NotCoordinator):
		return resp
	case err != nil:
		resp.ErrorCode = errorCode(err)
		return resp
	}
	for _, state := range req.StateFilters {
		if !slices.Contains(txnStates, state) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, state)
		}
	}
	for _, t := range s.node.Meta().Transactions() {
		age := time.Since(time.UnixMilli(t.StartedMillis))
		switch {
		case !named.MatchString(t.ID), c.txn(kmsg.ACLOperationDescribe, t.ID) != nil,
			len(req.ProducerIDFilters) > 0 && !slices.Contains(req.ProducerIDFilters, t.ProducerID),
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

// namePattern compiles the regular expression that whole names must match; none
// matches all.
func namePattern(pattern *string) (*regexp.Regexp, error) {
	if orEmpty(pattern) == "" {
		return regexp.MustCompile(""), nil
	}
	r, err := regexp.Compile("^(?:" + *pattern + ")$")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kerr.InvalidRegularExpression, err)
	}
	return r, nil
}
