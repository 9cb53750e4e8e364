package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// addPartitionsToTxn names the partitions that a transaction will write to: all
// of them or, if one does not exist, none. From version 4 on it is for brokers,
// who ask for many transactions at once.
func (s *Server) addPartitionsToTxn(c *call, req *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	if c.version < 4 {
		resp.Topics = s.addToTxn(c, txnPartitions{
			id: req.TransactionalID, producerID: req.ProducerID, epoch: req.ProducerEpoch, topics: req.Topics,
		})
		return resp
	}
	if err := c.cluster(kmsg.ACLOperationClusterAction); err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	for _, t := range req.Transactions {
		answer := kmsg.NewAddPartitionsToTxnResponseTransaction()
		answer.TransactionalID = t.TransactionalID
		asked := txnPartitions{id: t.TransactionalID, producerID: t.ProducerID, epoch: t.ProducerEpoch, verify: t.VerifyOnly}
		for _, topic := range t.Topics {
			asked.topics = append(asked.topics, kmsg.AddPartitionsToTxnRequestTopic(topic))
		}
		for _, topic := range s.addToTxn(c, asked) {
			out := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
			out.Topic = topic.Topic
			for _, p := range topic.Partitions {
				out.Partitions = append(out.Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition(p))
			}
			answer.Topics = append(answer.Topics, out)
		}
		resp.Transactions = append(resp.Transactions, answer)
	}
	return resp
}

// txnPartitions is what is asked for one transaction.
type txnPartitions struct {
	id         string
	producerID int64
	epoch      int16
	verify     bool // only say whether they are in it
	topics     []kmsg.AddPartitionsToTxnRequestTopic
}

func (s *Server) addToTxn(c *call, asked txnPartitions) []kmsg.AddPartitionsToTxnResponseTopic {
	var topics []kmsg.AddPartitionsToTxnResponseTopic
	var partitions []metadata.StreamPartition
	missing := false
	refused := error(nil)
	if c.version < 4 { // a broker has asked for its client
		refused = c.txn(kmsg.ACLOperationWrite, asked.id)
	}
	for _, t := range asked.topics {
		topic := kmsg.NewAddPartitionsToTxnResponseTopic()
		topic.Topic = t.Topic
		for _, index := range t.Partitions {
			answer := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			answer.Partition = index
			err := refused
			if err == nil && c.version < 4 {
				err = c.topic(kmsg.ACLOperationWrite, t.Topic)
			}
			var p *cluster.Partition
			if err == nil {
				p, err = s.node.Partition(t.Topic, index)
			}
			if err == nil {
				partitions = append(partitions, p.Key())
			} else {
				missing = true
				answer.ErrorCode = errorCode(err)
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		topics = append(topics, topic)
	}
	code := kerr.OperationNotAttempted.Code
	switch {
	case missing:
	case asked.verify:
		code = fencedCode(coordinatorCode(s.txns.verify(asked, partitions)), true)
	default:
		err := s.txns.add(s.ctx, metadata.TxnJoin{ID: asked.id, ProducerID: asked.producerID, Epoch: asked.epoch, Partitions: partitions})
		code = fencedCode(coordinatorCode(err), c.version >= 2)
	}
	for i := range topics {
		for j := range topics[i].Partitions {
			if answer := &topics[i].Partitions[j]; answer.ErrorCode == 0 {
				answer.ErrorCode = code
			}
		}
	}
	return topics
}

// verify says whether all partitions are in the producer's open transaction.
func (c *txnCoordinator) verify(asked txnPartitions, partitions []metadata.StreamPartition) error {
	if _, err := c.coordinate(); err != nil {
		return err
	}
	_, err := c.check(metadata.TxnJoin{ID: asked.id, ProducerID: asked.producerID, Epoch: asked.epoch, Partitions: partitions})
	return err
}
