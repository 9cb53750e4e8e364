package kafka

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// createPartitions grows streams.
func (s *Server) createPartitions(c *call, req *kmsg.CreatePartitionsRequest) kmsg.Response {
	defer c.within(req.TimeoutMillis)()
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewCreatePartitionsResponseTopic()
		topic.Topic = t.Topic
		if err := s.growTopic(c, t, req.ValidateOnly); err != nil {
			topic.ErrorCode, topic.ErrorMessage = errorCode(err), errorText(err)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func (s *Server) growTopic(c *call, t kmsg.CreatePartitionsRequestTopic, validateOnly bool) error {
	if err := c.topic(kmsg.ACLOperationAlter, t.Topic); err != nil {
		return err
	}
	stream, err := s.knownName(c.ctx, t.Topic)
	switch {
	case err != nil:
		return err
	case t.Count <= stream.Partitions:
		return fmt.Errorf("%w: %s has %d partitions, asked were %d", kerr.InvalidPartitions, t.Topic, stream.Partitions, t.Count)
	}
	for i, a := range t.Assignment {
		// Where the new ones go is settled: they share the journals that there are.
		have, err := s.node.Partition(t.Topic, (stream.Partitions+int32(i))%stream.Journals)
		if err != nil {
			return err
		}
		if !slices.Equal(slices.Sorted(slices.Values(a.Replicas)), slices.Sorted(slices.Values(have.Replicas()))) {
			return fmt.Errorf("%w: partition %d shares a journal that is on %v, asked was %v",
				kerr.InvalidReplicaAssignment, stream.Partitions+int32(i), have.Replicas(), a.Replicas)
		}
	}
	if n := int(t.Count - stream.Partitions); len(t.Assignment) > 0 && len(t.Assignment) != n {
		return fmt.Errorf("%w: %d assignments for %d new partitions", kerr.InvalidReplicaAssignment, len(t.Assignment), n)
	}
	if validateOnly {
		return nil
	}
	return s.node.GrowStream(c.ctx, stream.ID, t.Count)
}
