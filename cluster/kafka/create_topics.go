package kafka

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// createTopics creates streams.
func (s *Server) createTopics(c *call, req *kmsg.CreateTopicsRequest) kmsg.Response {
	defer c.within(req.TimeoutMillis)()
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	named := map[string]int{}
	for _, t := range req.Topics {
		named[t.Topic]++
	}
	for _, t := range req.Topics {
		if named[t.Topic] < 0 {
			continue // it has its answer
		}
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.Topic, -1, -1
		var stream *metadata.Stream
		err := error(nil)
		if named[t.Topic] > 1 {
			err = fmt.Errorf("%w: topic %q is named twice", kerr.InvalidRequest, t.Topic)
			named[t.Topic] = -1
		} else {
			if err = c.mayCreate(t.Topic); err == nil {
				stream, err = s.createTopic(c, t, req.ValidateOnly)
			}
		}
		if err != nil {
			topic.ErrorCode, topic.ErrorMessage = errorCode(err), errorText(err)
		} else {
			topic.TopicID, topic.NumPartitions, topic.ReplicationFactor = stream.ID, stream.Partitions, s.replicationFactor(stream)
			if err := c.topic(kmsg.ACLOperationDescribeConfigs, t.Topic); err != nil {
				topic.NumPartitions, topic.ReplicationFactor, topic.ConfigErrorCode = -1, -1, errorCode(err)
			} else {
				topic.Configs = s.createdConfigs(stream)
			}
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func (s *Server) createTopic(c *call, t kmsg.CreateTopicsRequestTopic, validateOnly bool) (*metadata.Stream, error) {
	n := metadata.NewStream{Name: t.Topic, Partitions: t.NumPartitions, Config: map[string]string{}, ValidateOnly: validateOnly}
	nodes := len(s.node.Members())
	switch {
	case !metadata.ValidStreamName(t.Topic):
		return nil, fmt.Errorf("%w: %q", kerr.InvalidTopicException, t.Topic)
	case len(t.ReplicaAssignment) > 0:
		placed, err := assigned(t)
		if err != nil {
			return nil, err
		}
		n.Partitions, n.Placement = int32(len(placed)), placed
		if !slices.ContainsFunc(placed, func(r []int32) bool { return !slices.Equal(r, placed[0]) }) {
			n.Placement = placed[:1] // all lie alike: they share a journal
		}
	case t.NumPartitions == -1:
		n.Partitions = s.opts.AutoPartitions
	case t.NumPartitions <= 0:
		return nil, fmt.Errorf("%w: %d", kerr.InvalidPartitions, t.NumPartitions)
	case t.ReplicationFactor != -1 && (t.ReplicationFactor < 1 || int(t.ReplicationFactor) > nodes):
		return nil, fmt.Errorf("%w: copies asked for: %d, nodes: %d", kerr.InvalidReplicationFactor, t.ReplicationFactor, nodes)
	}
	n.Replication = int32(max(t.ReplicationFactor, 0)) // 0: as many as is usual here
	for _, config := range t.Configs {
		if config.Value == nil {
			return nil, fmt.Errorf("%w: %s has no value", kerr.InvalidConfig, config.Name)
		}
		n.Config[config.Name] = *config.Value
	}
	stream, err := s.node.CreateStream(c.ctx, n)
	if len(n.Placement) > 0 && (errors.Is(err, metadata.ErrUnknownMember) || errors.Is(err, metadata.ErrInvalidReplication)) {
		err = fmt.Errorf("%w: %w", kerr.InvalidReplicaAssignment, err)
	}
	return stream, err
}

// assigned returns the nodes of each partition of a replica assignment, which has to name all from 0 on, with as many nodes
// each.
func assigned(t kmsg.CreateTopicsRequestTopic) ([][]int32, error) {
	if t.NumPartitions != -1 || t.ReplicationFactor != -1 {
		return nil, fmt.Errorf("%w: both an assignment and counts", kerr.InvalidRequest)
	}
	placed := make([][]int32, len(t.ReplicaAssignment))
	for _, a := range t.ReplicaAssignment {
		if a.Partition < 0 || int(a.Partition) >= len(placed) || placed[a.Partition] != nil || len(a.Replicas) == 0 || len(a.Replicas) != len(t.ReplicaAssignment[0].Replicas) {
			return nil, fmt.Errorf("%w: partition %d on %v", kerr.InvalidReplicaAssignment, a.Partition, a.Replicas)
		}
		placed[a.Partition] = a.Replicas
	}
	return placed, nil
}

// replicationFactor is how many replicas each of a stream's journals has: as many as the
// first, unless somebody has changed single ones.
func (s *Server) replicationFactor(stream *metadata.Stream) int16 {
	p, err := s.node.Partition(stream.Name, 0)
	if err != nil {
		return -1
	}
	return int16(len(p.Replicas()))
}

func (s *Server) createdConfigs(stream *metadata.Stream) []kmsg.CreateTopicsResponseTopicConfig {
	var configs []kmsg.CreateTopicsResponseTopicConfig
	for _, setting := range metadata.Settings() {
		config := kmsg.NewCreateTopicsResponseTopicConfig()
		config.Name, config.Value = setting.Name, kmsg.StringPtr(s.setting(stream, setting.Name))
		config.Source = int8(source(stream, setting.Name))
		configs = append(configs, config)
	}
	return configs
}
