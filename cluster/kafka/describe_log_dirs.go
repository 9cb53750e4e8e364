package kafka

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// describeLogDirs answers how much of the disk topics take: nil is all of them.
func (s *Server) describeLogDirs(c *call, req *kmsg.DescribeLogDirsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	if err := c.cluster(kmsg.ACLOperationDescribe); err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir, dir.UsableBytes, dir.TotalBytes = s.node.DataDir()
	asked := map[string][]int32{}
	for _, t := range req.Topics {
		asked[t.Topic] = append(asked[t.Topic], t.Partitions...)
	}
	for _, stream := range s.node.Meta().Streams() {
		partitions, named := asked[stream.Name]
		if req.Topics != nil && !named {
			continue
		}
		topic, err := s.logDirTopic(stream, func(p int32) bool { return req.Topics == nil || slices.Contains(partitions, p) })
		if err != nil {
			dir.ErrorCode, dir.Topics = errorCode(err), nil
			break
		}
		dir.Topics = append(dir.Topics, topic)
	}
	resp.Dirs = append(resp.Dirs, dir)
	return resp
}

// has reports whether this node is one of a partition's replicas.
func (s *Server) has(stream *metadata.Stream, partition int32) bool {
	p, err := s.node.Partition(stream.Name, partition)
	return err == nil && slices.Contains(p.Replicas(), s.node.ID())
}

func (s *Server) logDirTopic(stream *metadata.Stream, wanted func(int32) bool) (kmsg.DescribeLogDirsResponseDirTopic, error) {
	topic := kmsg.NewDescribeLogDirsResponseDirTopic()
	topic.Topic = stream.Name
	for i := range stream.Partitions {
		if !wanted(i) || !s.has(stream, i) {
			continue
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition = i
		var err error
		if p.Size, err = s.node.PartitionBytes(stream, i); err != nil {
			return topic, err
		}
		topic.Partitions = append(topic.Partitions, p)
	}
	return topic, nil
}
