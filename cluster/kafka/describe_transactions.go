package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// describeTransactions answers with the state of transactional ids.
func (s *Server) describeTransactions(c *call, req *kmsg.DescribeTransactionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	for _, id := range req.TransactionalIDs {
		state := kmsg.NewDescribeTransactionsResponseTransactionState()
		state.TransactionalID = id
		_, err := s.coordinate()
		if denied := c.txn(kmsg.ACLOperationDescribe, id); denied != nil {
			err = denied
		}
		if err != nil {
			state.ErrorCode = errorCode(err)
			resp.TransactionStates = append(resp.TransactionStates, state)
			continue
		}
		t, ok := s.node.Meta().Transaction(id)
		if !ok {
			state.ErrorCode = kerr.TransactionalIDNotFound.Code
			resp.TransactionStates = append(resp.TransactionStates, state)
			continue
		}
		state.State, state.TimeoutMillis, state.StartTimestamp = string(t.State), t.TimeoutMillis, t.StartedMillis
		state.ProducerID, state.ProducerEpoch = t.ProducerID, t.Epoch
		topics := map[string]int{}
		for _, p := range t.Partitions {
			stream, ok := s.node.Meta().StreamByID(p.Stream)
			if !ok || c.topic(kmsg.ACLOperationDescribe, stream.Name) != nil {
				continue
			}
			i, seen := topics[stream.Name]
			if !seen {
				topic := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
				topic.Topic = stream.Name
				i = len(state.Topics)
				topics[stream.Name] = i
				state.Topics = append(state.Topics, topic)
			}
			state.Topics[i].Partitions = append(state.Topics[i].Partitions, p.Partition)
		}
		resp.TransactionStates = append(resp.TransactionStates, state)
	}
	return resp
}
