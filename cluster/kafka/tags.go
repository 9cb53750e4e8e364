package kafka

import (
	"github.com/daybook-data/daybook/cluster/metadata"
)

// streamOf finds a stream by its name, or by that of one of its tags: consumers
// name "stream@tag" where they name a topic.
func (s *Server) streamOf(topic string) (stream *metadata.Stream, tag string, ok bool) {
	name, tag := metadata.SplitTag(topic)
	if metadata.JoinTag(name, tag) != topic {
		return nil, "", false
	}
	stream, ok = s.node.Meta().Stream(name)
	return stream, tag, ok
}
