package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// alterPartitionAssignments says which nodes are to have partitions. The journals move
// then, each with all of the partitions that share it.
func (s *Server) alterPartitionAssignments(c *call, req *kmsg.AlterPartitionAssignmentsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	defer c.within(req.TimeoutMillis)()
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	if err := c.cluster(kmsg.ACLOperationAlter); err != nil {
		resp.ErrorCode, resp.ErrorMessage = errorCode(err), errorText(err)
		return resp
	}
	mayResize := c.version < 1 || req.AllowReplicationFactorChange
	for _, t := range req.Topics {
		topic := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		topic.Topic = t.Topic
		stream, known := s.node.Meta().Stream(t.Topic)
		asked := map[int32][]int32{} // by journal
		for _, p := range t.Partitions {
			answer := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			answer.Partition = p.Partition
			err := error(metadata.ErrUnknownStream)
			if known {
				err = s.reassign(c.ctx, stream, p, mayResize, asked)
			}
			answer.ErrorCode, answer.ErrorMessage = errorCode(err), errorText(err)
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// reassign moves the journal of one partition. asked holds what the request has asked for
// each journal before.
func (s *Server) reassign(ctx context.Context, stream *metadata.Stream, p kmsg.AlterPartitionAssignmentsRequestTopicPartition, mayResize bool, asked map[int32][]int32) error {
	part, err := s.node.Partition(stream.Name, p.Partition)
	if err != nil {
		return err
	}
	journal := p.Partition % stream.Journals
	before, again := asked[journal]
	switch {
	case p.Replicas == nil:
		return fmt.Errorf("%w: what has begun goes on; ask for the replicas that there were", kerr.NoReassignmentInProgress)
	case again && !slices.Equal(before, p.Replicas):
		return fmt.Errorf("%w: partitions %d and others share a journal, and are asked for on %v and on %v", kerr.InvalidReplicaAssignment, p.Partition, before, p.Replicas)
	case again:
		return nil
	case !mayResize && len(p.Replicas) != len(part.Replicas()):
		return fmt.Errorf("%w: %d, there are %d", kerr.InvalidReplicationFactor, len(p.Replicas), len(part.Replicas()))
	}
	if !slices.Equal(p.Replicas, part.Replicas()) {
		if err := s.node.Moves().SetReplicas(ctx, stream.ID, journal, p.Replicas); err != nil {
			if errorCode(err) == kerr.RequestTimedOut.Code {
				return err
			}
			return fmt.Errorf("%w: %w", kerr.InvalidReplicaAssignment, err)
		}
	}
	asked[journal] = p.Replicas
	return nil
}

// listPartitionReassignments answers with the partitions that are on their way to other
// nodes: those that are named, or all.
func (s *Server) listPartitionReassignments(c *call, req *kmsg.ListPartitionReassignmentsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	if err := c.cluster(kmsg.ACLOperationDescribe); err != nil {
		resp.ErrorCode, resp.ErrorMessage = errorCode(err), errorText(err)
		return resp
	}
	asked := map[string][]int32{}
	for _, t := range req.Topics {
		asked[t.Topic] = append(asked[t.Topic], t.Partitions...)
	}
	for _, stream := range s.node.Meta().Streams() {
		topic := kmsg.NewListPartitionReassignmentsResponseTopic()
		topic.Topic = stream.Name
		for i := range stream.Partitions {
			if req.Topics != nil && !slices.Contains(asked[stream.Name], i) {
				continue
			}
			if p, moving := s.reassignment(stream, i); moving {
				topic.Partitions = append(topic.Partitions, p)
			}
		}
		if len(topic.Partitions) > 0 {
			resp.Topics = append(resp.Topics, topic)
		}
	}
	return resp
}

// reassignment returns what is still to be done for a partition: until the copies that are
// to go have gone, which is when all new ones count.
func (s *Server) reassignment(stream *metadata.Stream, index int32) (p kmsg.ListPartitionReassignmentsResponseTopicPartition, moving bool) {
	p = kmsg.NewListPartitionReassignmentsResponseTopicPartition()
	p.Partition = index
	journal := int(index % stream.Journals)
	part, err := s.node.Partition(stream.Name, index)
	if err != nil || journal >= len(stream.Leaving) || len(stream.Leaving[journal]) == 0 {
		return p, false
	}
	p.Replicas = slices.Clone(part.Replicas())
	for _, r := range stream.Leaving[journal] {
		if !slices.Contains(p.Replicas, r.Node) {
			p.Replicas, p.RemovingReplicas = append(p.Replicas, r.Node), append(p.RemovingReplicas, r.Node)
		}
	}
	for _, id := range part.Replicas() {
		if !slices.Contains(part.InSync(), id) {
			p.AddingReplicas = append(p.AddingReplicas, id)
		}
	}
	return p, true
}
