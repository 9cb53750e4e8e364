package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// deleteTopics deletes streams by name, or from version 6 also by id.
func (s *Server) deleteTopics(c *call, req *kmsg.DeleteTopicsRequest) kmsg.Response {
	defer c.within(req.TimeoutMillis)()
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	asked := req.Topics
	for _, name := range req.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		asked = append(asked, t)
	}
	for _, t := range asked {
		topic := kmsg.NewDeleteTopicsResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		if err := s.deleteTopic(c, t, &topic); err != nil {
			topic.ErrorCode, topic.ErrorMessage = errorCode(err), errorText(err)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func (s *Server) deleteTopic(c *call, t kmsg.DeleteTopicsRequestTopic, answer *kmsg.DeleteTopicsResponseTopic) error {
	if t.Topic == nil {
		stream, err := s.known(c.ctx, func(m *metadata.State) (*metadata.Stream, bool) { return m.StreamByID(t.TopicID) })
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			err = kerr.UnknownTopicID
		}
		if err != nil {
			return err
		}
		if err := c.topic(kmsg.ACLOperationDescribe, stream.Name); err != nil {
			return err // its name is not told
		}
		answer.Topic = kmsg.StringPtr(stream.Name)
		if err := c.topic(kmsg.ACLOperationDelete, stream.Name); err != nil {
			return err
		}
		return s.node.DeleteStream(c.ctx, stream.ID)
	}
	for _, op := range []kmsg.ACLOperation{kmsg.ACLOperationDescribe, kmsg.ACLOperationDelete} {
		if err := c.topic(op, *t.Topic); err != nil {
			return err
		}
	}
	stream, err := s.knownName(c.ctx, *t.Topic)
	if err != nil {
		return err
	}
	answer.TopicID = stream.ID
	return s.node.DeleteStream(c.ctx, stream.ID)
}
