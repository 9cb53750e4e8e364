package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// CreateStream creates a stream. Its journals are made when it is first used.
func (n *Node) CreateStream(ctx context.Context, new metadata.NewStream) (*metadata.Stream, error) {
	s, err := new.Stream(n.opts.Partitions)
	if err != nil {
		return nil, err
	}
	if err := n.moves.Place(s, new.Replication, new.Placement); err != nil {
		return nil, err
	}
	if new.ValidateOnly {
		if _, taken := n.meta.Stream(s.Name); taken {
			return nil, metadata.ErrStreamExists
		}
		return s, nil
	}
	v, err := n.proposer.propose(ctx, metadata.Command{CreateStream: &metadata.CreateStream{Stream: *s}})
	if err != nil {
		return nil, fmt.Errorf("creating stream %s: %w", s.Name, err)
	}
	return v.(*metadata.Stream), nil
}

// GrowStream gives a stream more partitions. Records that are there stay where
// they are; keys may go to other partitions from now on.
func (n *Node) GrowStream(ctx context.Context, id metadata.StreamID, partitions int32) error {
	if partitions > metadata.MaxPartitions {
		return fmt.Errorf("%w: %d partitions, allowed are at most %d", metadata.ErrInvalidStream, partitions, metadata.MaxPartitions)
	}
	_, err := n.proposer.propose(ctx, metadata.Command{GrowStream: &metadata.GrowStream{ID: id, Partitions: partitions}})
	return err
}

// settledAtCreation are the settings that decide how a stream's journals are
// opened.
var settledAtCreation = []string{metadata.SettingJournals, metadata.SettingDurability}

// ConfigChange is a change of a stream's settings.
type ConfigChange struct {
	Set    map[string]string
	Delete []string
	// Replace drops all settings that are not in Set.
	Replace bool
	// ValidateOnly checks all but changes nothing.
	ValidateOnly bool
}

// ConfigureStream changes a stream's settings.
func (n *Node) ConfigureStream(ctx context.Context, id metadata.StreamID, change ConfigChange) error {
	s, ok := n.meta.StreamByID(id)
	if !ok {
		return metadata.ErrUnknownStream
	}
	if err := metadata.CheckConfig(change.Set); err != nil {
		return err
	}
	set := maps.Clone(change.Set)
	if set == nil {
		set = map[string]string{}
	}
	for _, name := range settledAtCreation {
		if v, ok := change.Set[name]; ok && v != s.Value(name) {
			return fmt.Errorf("%w: %s can be set only when the stream is created", metadata.ErrInvalidConfig, name)
		}
		if v, given := s.Config[name]; change.Replace && given {
			set[name] = v // belongs to the stream for good
		}
	}
	for _, name := range change.Delete {
		if _, known := metadata.FindSetting(name); !known || slices.Contains(settledAtCreation, name) {
			return fmt.Errorf("%w: %q cannot be removed", metadata.ErrInvalidConfig, name)
		}
	}
	if change.ValidateOnly {
		return nil
	}
	_, err := n.proposer.propose(ctx, metadata.Command{ConfigureStream: &metadata.ConfigureStream{
		ID: id, Set: set, Delete: change.Delete, Replace: change.Replace,
	}})
	return err
}

// DeleteStream deletes a stream. When it returns the name is free and nobody can
// read or append any more; the files are removed then, by this run of the node
// or by the next.
func (n *Node) DeleteStream(ctx context.Context, id metadata.StreamID) error {
	_, err := n.proposer.propose(ctx, metadata.Command{TombstoneStream: &metadata.TombstoneStream{ID: id}})
	if err != nil {
		return err
	}
	n.wake()
	return nil
}
