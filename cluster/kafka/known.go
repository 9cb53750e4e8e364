package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// known finds the stream that somebody wants to change. One that this node does not know may have been made on another
// node a moment ago, or while this one could not hear of it: nobody is told that there is no such stream before this
// node has asked who leads the metadata.
func (s *Server) known(ctx context.Context, find func(*metadata.State) (*metadata.Stream, bool)) (*metadata.Stream, error) {
	stream, ok := find(s.node.Meta())
	if ok {
		return stream, nil
	}
	if err := s.node.SyncMeta(ctx); err != nil {
		return nil, fmt.Errorf("%w: this node does not know all streams: %w", kerr.NotController, err)
	}
	if stream, ok = find(s.node.Meta()); !ok {
		return nil, kerr.UnknownTopicOrPartition
	}
	return stream, nil
}

// knownName is known for a stream's name.
func (s *Server) knownName(ctx context.Context, name string) (*metadata.Stream, error) {
	return s.known(ctx, func(m *metadata.State) (*metadata.Stream, bool) { return m.Stream(name) })
}
