package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// offsetDelete forgets offsets of a group that nobody consumes with.
func (s *Server) offsetDelete(c *call, req *kmsg.OffsetDeleteRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	if err := c.group(kmsg.ACLOperationDelete, req.Group); err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	epoch, err := s.coordinate()
	if err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	d := s.describeGroup(epoch, req.Group)
	switch d.State {
	case membership.Empty:
	case "Dead":
		resp.ErrorCode = kerr.GroupIDNotFound.Code
		return resp
	default:
		resp.ErrorCode = kerr.GroupSubscribedToTopic.Code
		return resp
	}
	var partitions []metadata.StreamPartition
	for _, t := range req.Topics {
		topic := kmsg.NewOffsetDeleteResponseTopic()
		topic.Topic = t.Topic
		stream, tag, ok := s.streamOf(t.Topic)
		for _, p := range t.Partitions {
			answer := kmsg.NewOffsetDeleteResponseTopicPartition()
			answer.Partition = p.Partition
			if err := c.topic(kmsg.ACLOperationRead, t.Topic); err != nil {
				answer.ErrorCode = errorCode(err)
			} else if ok && p.Partition >= 0 && p.Partition < stream.Partitions {
				partitions = append(partitions, metadata.StreamPartition{Stream: stream.ID, Partition: p.Partition, Tag: tag})
			} else {
				answer.ErrorCode = kerr.UnknownTopicOrPartition.Code
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	if len(partitions) > 0 {
		ctx, cancel := c.soon()
		defer cancel()
		resp.ErrorCode = coordinatorCode(s.node.DeleteOffsets(ctx, epoch, req.Group, partitions))
	}
	return resp
}
