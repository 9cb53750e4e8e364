package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
)

// offsetForLeaderEpoch answers where an epoch's records end, by which consumers
// see whether what they have read is still what the log holds.
func (s *Server) offsetForLeaderEpoch(c *call, req *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	asked := time.Now()
	for _, t := range req.Topics {
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			answer := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			answer.Partition = p.Partition
			answer.LeaderEpoch, answer.EndOffset = -1, -1
			var part *cluster.Partition
			err := c.cluster(kmsg.ACLOperationClusterAction)
			if err != nil {
				err = c.topic(kmsg.ACLOperationDescribe, t.Topic)
			}
			if err == nil {
				part, err = s.node.Partition(t.Topic, p.Partition)
			}
			if err == nil {
				err = s.lead(part, p.CurrentLeaderEpoch)
			}
			if err == nil { // a consumer that has read more than a former leader knows would start anew
				_, err = part.BoundsSince(asked)
			}
			if err == nil {
				answer.LeaderEpoch, answer.EndOffset, err = part.EpochEnd(termOf(part, p.LeaderEpoch))
			}
			answer.ErrorCode = errorCode(err)
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}
