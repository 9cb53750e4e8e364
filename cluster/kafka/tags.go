package kafka

import "github.com/daybook-data/daybook/cluster"

// streamOf finds a stream by its name, or by that of one of its tags: consumers
// name "stream@tag" where they name a topic.
func (s *Server) streamOf(topic string) (stream *cluster.Stream, tag string, ok bool) {
	name, tag := cluster.SplitTag(topic)
	if cluster.JoinTag(name, tag) != topic {
		return nil, "", false
	}
	stream, ok = s.node.Meta().Stream(name)
	return stream, tag, ok
}
