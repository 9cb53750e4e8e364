package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// electLeaders hands partitions to the replica that should lead them: those that are
// named, or all. There are no other elections to ask for: none may lose records.
func (s *Server) electLeaders(c *call, req *kmsg.ElectLeadersRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	defer c.within(req.TimeoutMillis)()
	err := c.cluster(kmsg.ACLOperationAlter)
	if err == nil && req.ElectionType != 0 {
		err = fmt.Errorf("%w: only the preferred leader can be elected", kerr.InvalidRequest)
	}
	asked := req.Topics
	if asked == nil {
		for _, stream := range s.node.Meta().Streams() {
			t := kmsg.NewElectLeadersRequestTopic()
			t.Topic = stream.Name
			for i := range stream.Partitions {
				t.Partitions = append(t.Partitions, i)
			}
			asked = append(asked, t)
		}
	}
	for _, t := range asked {
		topic := kmsg.NewElectLeadersResponseTopic()
		topic.Topic = t.Topic
		for _, index := range t.Partitions {
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition = index
			refused := err
			if refused == nil {
				refused = s.electLeader(c.ctx, t.Topic, index)
			}
			if req.Topics == nil && errors.Is(refused, kerr.ElectionNotNeeded) {
				continue // of all, those are answered for which something was done
			}
			p.ErrorCode, p.ErrorMessage = errorCode(refused), errorText(refused)
			topic.Partitions = append(topic.Partitions, p)
		}
		if len(topic.Partitions) > 0 {
			resp.Topics = append(resp.Topics, topic)
		}
	}
	if c.version >= 1 {
		resp.ErrorCode = errorCode(err)
	}
	return resp
}

// electLeader hands the journal of a partition to its preferred leader.
func (s *Server) electLeader(ctx context.Context, topic string, index int32) error {
	p, err := s.node.Partition(topic, index)
	if err != nil {
		return err
	}
	preferred := p.Replicas()[0]
	if id, _ := p.Leader(); id == preferred {
		return kerr.ElectionNotNeeded
	}
	stream, ok := s.node.Meta().StreamByID(p.Key().Stream)
	if !ok {
		return metadata.ErrUnknownStream
	}
	if err := s.node.Transfer(ctx, stream.ID, index%stream.Journals, preferred); err != nil {
		return fmt.Errorf("%w: %w", kerr.PreferredLeaderNotAvailable, err)
	}
	return nil
}
