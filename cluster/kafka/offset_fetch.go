package kafka

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// offsetFetch answers what groups have committed: one group until version 7, any
// number from version 8 on.
func (s *Server) offsetFetch(c *call, req *kmsg.OffsetFetchRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	err := s.knowOffsets(c)
	if c.version >= 8 {
		for _, g := range req.Groups {
			if err != nil {
				answer := kmsg.NewOffsetFetchResponseGroup()
				answer.Group, answer.ErrorCode = g.Group, coordinatorCode(err)
				resp.Groups = append(resp.Groups, answer)
				continue
			}
			resp.Groups = append(resp.Groups, s.groupOffsets(c, g, req.RequireStable))
		}
		return resp
	}
	return s.oneGroupsOffsets(c, req, resp, err)
}

// groupOffsets answers for one group of several. From version 10 on topics have ids instead of names.
func (s *Server) groupOffsets(c *call, g kmsg.OffsetFetchRequestGroup, stable bool) kmsg.OffsetFetchResponseGroup {
	var asked map[string][]int32
	var unknown []kmsg.OffsetFetchRequestGroupTopic
	if g.Topics != nil {
		asked = map[string][]int32{}
	}
	for _, t := range g.Topics {
		if c.version >= 10 {
			t.Topic = s.topicName(t.TopicID)
		}
		if c.version >= 10 && t.Topic == "" {
			unknown = append(unknown, t)
			continue
		}
		asked[t.Topic] = append(asked[t.Topic], t.Partitions...)
	}
	answer := s.fetchGroupOffsets(c, g.Group, asked, stable)
	for _, t := range unknown {
		answer.Topics = append(answer.Topics, unknownTopicID(t))
	}
	return answer
}

// oneGroupsOffsets answers a request of before version 8, whose one group stands in the request itself.
func (s *Server) oneGroupsOffsets(c *call, req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse, err error) kmsg.Response {
	if err != nil {
		resp.ErrorCode = coordinatorCode(err)
		return resp
	}
	var asked map[string][]int32
	if req.Topics != nil {
		asked = map[string][]int32{}
		for _, t := range req.Topics {
			asked[t.Topic] = append(asked[t.Topic], t.Partitions...)
		}
	}
	group := s.fetchGroupOffsets(c, req.Group, asked, req.RequireStable)
	resp.ErrorCode = group.ErrorCode
	for _, t := range group.Topics {
		topic := kmsg.NewOffsetFetchResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition(p))
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// knowOffsets returns nil once this node has every offset that any coordinator has
// answered for: one that was deposed, and does not know it yet, must not let a consumer
// start where others have been.
func (s *Server) knowOffsets(c *call) error {
	if _, err := s.coordinate(); err != nil {
		return err
	}
	ctx, cancel := c.soon()
	defer cancel()
	return s.node.SyncMeta(ctx)
}

// fetchGroupOffsets answers for one group; asked is nil for everything it has.
func (s *Server) fetchGroupOffsets(c *call, group string, asked map[string][]int32, stable bool) kmsg.OffsetFetchResponseGroup {
	answer := kmsg.NewOffsetFetchResponseGroup()
	answer.Group = group
	if err := c.group(kmsg.ACLOperationDescribe, group); err != nil {
		answer.ErrorCode = errorCode(err)
		return answer
	}
	all := asked == nil
	if all {
		asked = s.groupTopics(group)
	}
	topics := make([]string, 0, len(asked))
	for name := range asked {
		topics = append(topics, name)
	}
	slices.Sort(topics)
	for _, name := range topics {
		topic := kmsg.NewOffsetFetchResponseGroupTopic()
		topic.Topic = name
		if stream, ok := s.node.Meta().Stream(name); ok {
			topic.TopicID = stream.ID
		}
		hidden := c.topic(kmsg.ACLOperationDescribe, name)
		if hidden != nil && all {
			continue
		}
		for _, partition := range asked[name] {
			p := s.fetchGroupOffset(group, name, partition, stable)
			if hidden != nil {
				p = noOffset(partition)
				p.ErrorCode = errorCode(hidden)
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}

// noOffset is the answer for a partition for which nothing is committed.
func noOffset(partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	answer := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	answer.Partition, answer.Offset, answer.LeaderEpoch, answer.Metadata = partition, -1, -1, kmsg.StringPtr("")
	return answer
}

func unknownTopicID(t kmsg.OffsetFetchRequestGroupTopic) kmsg.OffsetFetchResponseGroupTopic {
	topic := kmsg.NewOffsetFetchResponseGroupTopic()
	topic.TopicID = t.TopicID
	for _, partition := range t.Partitions {
		p := noOffset(partition)
		p.ErrorCode = kerr.UnknownTopicID.Code
		topic.Partitions = append(topic.Partitions, p)
	}
	return topic
}

func (s *Server) fetchGroupOffset(group, topic string, partition int32, stable bool) kmsg.OffsetFetchResponseGroupTopicPartition {
	answer := noOffset(partition)
	stream, tag, ok := s.streamOf(topic)
	if !ok {
		return answer // nothing committed, as for a topic that never was
	}
	offset, ok, unstable := s.node.Meta().GroupOffset(group, metadata.StreamPartition{Stream: stream.ID, Partition: partition, Tag: tag})
	if stable && unstable {
		answer.ErrorCode = kerr.UnstableOffsetCommit.Code
		return answer
	}
	if ok {
		answer.Offset, answer.LeaderEpoch = offset.Offset, offset.LeaderEpoch
		answer.Metadata = kmsg.StringPtr(string(offset.Metadata))
	}
	return answer
}

// groupTopics returns the partitions for which the group has offsets, by topic.
func (s *Server) groupTopics(group string) map[string][]int32 {
	topics := map[string][]int32{}
	partitions := s.node.Meta().GroupPartitions(group)
	slices.SortFunc(partitions, func(a, b metadata.StreamPartition) int { return cmp.Compare(a.Partition, b.Partition) })
	for _, p := range partitions {
		if stream, ok := s.node.Meta().StreamByID(p.Stream); ok {
			name := metadata.JoinTag(stream.Name, p.Tag)
			topics[name] = append(topics[name], p.Partition)
		}
	}
	return topics
}
