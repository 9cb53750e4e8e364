package kafka

import "github.com/twmb/franz-go/pkg/kmsg"

// deleteRecords moves the start of partitions up.
func (s *Server) deleteRecords(c *call, req *kmsg.DeleteRecordsRequest) kmsg.Response {
	defer c.within(req.TimeoutMillis)()
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewDeleteRecordsResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			answer := kmsg.NewDeleteRecordsResponseTopicPartition()
			answer.Partition, answer.LowWatermark = p.Partition, -1
			low, err := int64(-1), c.topic(kmsg.ACLOperationDelete, t.Topic)
			if err == nil {
				low, err = s.deleteBefore(t.Topic, p.Partition, p.Offset)
			}
			if err != nil {
				answer.ErrorCode = errorCode(err)
			} else {
				answer.LowWatermark = low
			}
			topic.Partitions = append(topic.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// deleteBefore drops what lies before offset; -1 is all there is.
func (s *Server) deleteBefore(topic string, partition int32, offset int64) (int64, error) {
	p, err := s.node.Partition(topic, partition)
	if err != nil {
		return -1, err
	}
	if err := s.lead(p, -1); err != nil {
		return -1, err
	}
	if offset == -1 {
		bounds, err := p.Bounds()
		if err != nil {
			return -1, err
		}
		offset = bounds.HighWatermark
	}
	return p.DeleteBefore(offset)
}
