package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// txnOffsetCommit adds offsets to a transaction; they count once it commits.
func (s *Server) txnOffsetCommit(c *call, req *kmsg.TxnOffsetCommitRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	epoch, err := s.mayPend(c, req)
	now := time.Now().UnixMilli()
	var offsets []metadata.GroupOffset
	var accepted []*kmsg.TxnOffsetCommitResponseTopicPartition
	for _, t := range req.Topics {
		topic := kmsg.NewTxnOffsetCommitResponseTopic()
		topic.Topic = t.Topic
		topic.Partitions = make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions))
		for i, p := range t.Partitions {
			answer := &topic.Partitions[i]
			*answer = kmsg.NewTxnOffsetCommitResponseTopicPartition()
			answer.Partition = p.Partition
			offset, refused := s.groupOffset(c, t.Topic, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, now)
			switch {
			case err != nil:
				answer.ErrorCode = errorCode(err)
			case refused != nil:
				answer.ErrorCode = errorCode(refused)
			default:
				offsets, accepted = append(offsets, offset), append(accepted, answer)
			}
		}
		resp.Topics = append(resp.Topics, topic)
	}
	if len(offsets) == 0 {
		return resp
	}
	ctx, cancel := c.soon()
	defer cancel()
	if c.version >= 5 { // the group joins the transaction with its first offsets
		err = s.txns.add(s.ctx, metadata.TxnJoin{ID: req.TransactionalID, ProducerID: req.ProducerID, Epoch: req.ProducerEpoch, Groups: []string{req.Group}})
	}
	if err == nil {
		err = s.node.PendTxnOffsets(ctx, cluster.PendingOffsets{
			TransactionalID: req.TransactionalID, ProducerID: req.ProducerID, Epoch: req.ProducerEpoch,
			Group: req.Group, Offsets: offsets, Coordinator: epoch,
		})
	}
	for _, answer := range accepted {
		answer.ErrorCode = coordinatorCode(err) // of a fenced producer INVALID_PRODUCER_EPOCH, in all versions
	}
	return resp
}

// mayPend says whether the client may add offsets of the group to the transaction, and under which epoch that was decided.
func (s *Server) mayPend(c *call, req *kmsg.TxnOffsetCommitRequest) (epoch uint64, err error) {
	if err := c.txn(kmsg.ACLOperationWrite, req.TransactionalID); err != nil {
		return 0, err
	}
	if err := c.group(kmsg.ACLOperationRead, req.Group); err != nil {
		return 0, err
	}
	if epoch, err = s.coordinate(); err != nil {
		return 0, err
	}
	// A client that names its membership is held to it; older ones cannot.
	if req.Generation >= 0 || req.MemberID != "" {
		err = s.mayCommit(epoch, req.Group, req.MemberID, orEmpty(req.InstanceID), req.Generation)
	}
	return epoch, err
}
