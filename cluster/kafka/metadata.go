package kafka

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// metadata answers which streams there are and who serves them, and creates a
// stream that is asked for if client and server allow it.
func (s *Server) metadata(c *call, req *kmsg.MetadataRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	brokers := c.conn.brokers()
	for _, b := range brokers {
		broker := kmsg.NewMetadataResponseBroker()
		broker.NodeID, broker.Host, broker.Port, broker.Rack = b.id, b.host, b.port, b.rack
		resp.Brokers = append(resp.Brokers, broker)
	}
	resp.ControllerID = s.node.Controller()
	resp.ClusterID = kmsg.StringPtr(s.node.ClusterID())
	if req.IncludeClusterAuthorizedOperations && c.cluster(kmsg.ACLOperationDescribe) == nil {
		resp.AuthorizedOperations = c.authorized(kmsg.ACLResourceTypeCluster, clusterName)
	}
	// Nil means all; so does an empty list in version 0, which has no null.
	if req.Topics == nil || c.version == 0 && len(req.Topics) == 0 {
		for _, stream := range s.node.Meta().Streams() {
			if c.topic(kmsg.ACLOperationDescribe, stream.Name) == nil {
				resp.Topics = append(resp.Topics, s.metadataTopic(c, stream, brokers, req.IncludeTopicAuthorizedOperations))
			}
		}
		return resp
	}
	create := !s.opts.NoAutoCreate && (c.version < 4 || req.AllowAutoTopicCreation)
	for _, t := range req.Topics {
		stream, err := s.findTopic(c, t, create)
		if err == nil {
			topic := s.metadataTopic(c, stream, brokers, req.IncludeTopicAuthorizedOperations)
			if t.Topic != nil && *t.Topic != stream.Name { // a tag: it has no id of its own, so clients name it
				topic.Topic, topic.TopicID = t.Topic, [16]byte{}
			}
			resp.Topics = append(resp.Topics, topic)
			continue
		}
		topic := kmsg.NewMetadataResponseTopic()
		topic.ErrorCode, topic.Topic, topic.TopicID = errorCode(err), t.Topic, t.TopicID
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func (s *Server) findTopic(c *call, t kmsg.MetadataRequestTopic, create bool) (*metadata.Stream, error) {
	if t.Topic == nil {
		stream, ok := s.node.Meta().StreamByID(t.TopicID)
		if !ok || c.topic(kmsg.ACLOperationDescribe, stream.Name) != nil {
			return nil, kerr.UnknownTopicID // that it exists is nobody's business either
		}
		return stream, nil
	}
	if err := c.topic(kmsg.ACLOperationDescribe, *t.Topic); err != nil {
		return nil, err
	}
	stream, tag, ok := s.streamOf(*t.Topic)
	name, _ := metadata.SplitTag(*t.Topic)
	switch {
	case ok:
		return stream, nil
	case tag != "" && metadata.ValidStreamName(name):
		return nil, kerr.UnknownTopicOrPartition // nobody makes a stream by reading a part of it
	case !metadata.ValidStreamName(*t.Topic):
		return nil, kerr.InvalidTopicException
	case internalTopic(*t.Topic): // it comes to be as in Kafka: when it is named
	case !create:
		return nil, kerr.UnknownTopicOrPartition
	default:
		if err := c.mayCreate(*t.Topic); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.soon()
	defer cancel()
	stream, err := s.node.CreateStream(ctx, metadata.NewStream{Name: *t.Topic, Partitions: s.opts.AutoPartitions})
	if errors.Is(err, metadata.ErrStreamExists) { // by another client, a moment ago
		if stream, ok := s.node.Meta().Stream(*t.Topic); ok {
			return stream, nil
		}
	}
	return stream, err
}

// internalTopic says that a topic is one of those in which Kafka keeps groups and
// transactions. Here they are in the metadata; the topics are for clients that look
// for them, and nobody may write to them.
func internalTopic(name string) bool {
	return name == "__consumer_offsets" || name == "__transaction_state"
}

// topicName returns the name of the topic with that id; empty if there is none.
func (s *Server) topicName(id metadata.StreamID) string {
	if stream, ok := s.node.Meta().StreamByID(id); ok {
		return stream.Name
	}
	return ""
}

func (s *Server) metadataTopic(c *call, stream *metadata.Stream, brokers []broker, operations bool) kmsg.MetadataResponseTopic {
	topic := kmsg.NewMetadataResponseTopic()
	if operations {
		topic.AuthorizedOperations = c.authorized(kmsg.ACLResourceTypeTopic, stream.Name)
	}
	topic.Topic, topic.TopicID, topic.IsInternal = kmsg.StringPtr(stream.Name), stream.ID, internalTopic(stream.Name)
	for i := range stream.Partitions {
		topic.Partitions = append(topic.Partitions, s.metadataPartition(c, stream, i, brokers))
	}
	return topic
}

// metadataPartition answers who leads a partition and who has it. A leader that this
// client cannot reach is as good as none.
func (s *Server) metadataPartition(c *call, stream *metadata.Stream, index int32, brokers []broker) kmsg.MetadataResponseTopicPartition {
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Partition, p.Leader = index, -1
	part, err := s.node.Partition(stream.Name, index)
	if err != nil {
		p.ErrorCode = kerr.LeaderNotAvailable.Code
		return p
	}
	leads := shownLeader(part)
	p.Leader, p.LeaderEpoch = leads.id, leads.epoch
	p.Replicas, p.ISR = part.Replicas(), part.InSync()
	p.OfflineReplicas = slices.DeleteFunc(slices.Clone(p.Replicas), s.node.Up)
	reachable := slices.ContainsFunc(brokers, func(b broker) bool { return b.id == p.Leader })
	switch {
	case p.Leader < 0:
		p.ErrorCode = kerr.LeaderNotAvailable.Code
	case !reachable && c.version >= 6:
		p.ErrorCode, p.Leader = kerr.ListenerNotFound.Code, -1
	case !reachable:
		p.ErrorCode, p.Leader = kerr.LeaderNotAvailable.Code, -1
	}
	return p
}
