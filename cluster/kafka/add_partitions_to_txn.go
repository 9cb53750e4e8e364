package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
)

// addPartitionsToTxn names the partitions that a transaction will write to: all
// of them or, if one does not exist, none.
func (s *Server) addPartitionsToTxn(c *call, req *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	var partitions []cluster.StreamPartition
	missing := false
	for _, t := range req.Topics {
		topic := kmsg.NewAddPartitionsToTxnResponseTopic()
		topic.Topic = t.Topic
		for _, index := range t.Partitions {
			answer := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			answer.Partition = index
			if p, err := s.node.Partition(t.Topic, index); err == nil {
				partitions = append(partitions, p.Key())
			} else {
				missing = true
				answer.ErrorCode = errorCode(err)
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	code := kerr.OperationNotAttempted.Code
	if !missing {
		err := s.txns.add(c.conn.server.ctx, req.TransactionalID, req.ProducerID, req.ProducerEpoch, partitions, nil)
		code = fencedCode(err, c.version >= 2)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if answer := &resp.Topics[i].Partitions[j]; answer.ErrorCode == 0 {
				answer.ErrorCode = code
			}
		}
	}
	return resp
}
