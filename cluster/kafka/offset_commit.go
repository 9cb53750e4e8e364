package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// maxOffsetMetadata is Kafka's bound for what a client may keep with an offset.
const maxOffsetMetadata = 4096

// offsetCommit stores a group's offsets and answers once they are durable.
func (s *Server) offsetCommit(c *call, req *kmsg.OffsetCommitRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	epoch, err := s.mayCommitHere(c, req)
	now := time.Now().UnixMilli()
	var offsets []metadata.GroupOffset
	var accepted []*kmsg.OffsetCommitResponseTopicPartition
	for _, t := range req.Topics {
		topic := kmsg.NewOffsetCommitResponseTopic()
		if c.version >= 10 {
			t.Topic = s.topicName(t.TopicID)
		}
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		topic.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		for i, p := range t.Partitions {
			answer := &topic.Partitions[i]
			*answer = kmsg.NewOffsetCommitResponseTopicPartition()
			answer.Partition = p.Partition
			offset, refused := s.groupOffset(c, t.Topic, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, now)
			if c.version >= 10 && t.Topic == "" {
				refused = kerr.UnknownTopicID
			}
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
	// Who may commit was decided by what is known under this epoch: under another one it
	// counts for nothing, as the members may be others.
	ctx, cancel := c.soon()
	defer cancel()
	code := coordinatorCode(s.node.CommitOffsetsAs(ctx, epoch, req.Group, offsets))
	for _, answer := range accepted {
		answer.ErrorCode = code
	}
	return resp
}

// mayCommitHere says whether the client may commit for the group, and under which epoch that was decided.
func (s *Server) mayCommitHere(c *call, req *kmsg.OffsetCommitRequest) (epoch uint64, err error) {
	if err := c.group(kmsg.ACLOperationRead, req.Group); err != nil {
		return 0, err
	}
	if epoch, err = s.coordinate(); err != nil {
		return 0, err
	}
	return epoch, s.mayCommit(epoch, req.Group, req.MemberID, orEmpty(req.InstanceID), req.Generation)
}

// mayCommit lets a member of the current generation commit, or anybody while the
// group has no members and the commit does not claim to be a member's.
func (s *Server) mayCommit(epoch uint64, group, memberID, instanceID string, generation int32) error {
	if !validGroup(group) {
		return kerr.InvalidGroupID
	}
	if g, ok := s.groups.find(epoch, group); ok {
		return g.MayCommit(memberID, instanceID, generation)
	}
	switch {
	case generation < 0 && memberID == "":
		return nil
	case s.node.Meta().HasGroup(group): // one without members
		return membership.ErrUnknownMember
	}
	return membership.ErrIllegalGeneration
}

// groupOffset checks one offset of a commit.
func (s *Server) groupOffset(c *call, topic string, partition int32, offset int64, epoch int32, note *string, now int64) (metadata.GroupOffset, error) {
	if err := c.topic(kmsg.ACLOperationRead, topic); err != nil {
		return metadata.GroupOffset{}, err
	}
	stream, tag, ok := s.streamOf(topic)
	switch {
	case !ok || partition < 0 || partition >= stream.Partitions:
		return metadata.GroupOffset{}, kerr.UnknownTopicOrPartition
	case len(orEmpty(note)) > maxOffsetMetadata:
		return metadata.GroupOffset{}, kerr.OffsetMetadataTooLarge
	case offset < 0:
		return metadata.GroupOffset{}, kerr.InvalidCommitOffsetSize
	}
	return metadata.GroupOffset{
		Stream: stream.ID, Partition: partition, Tag: tag,
		Offset: offset, LeaderEpoch: epoch,
		Metadata:     []byte(orEmpty(note)),
		CommitMillis: now,
	}, nil
}
