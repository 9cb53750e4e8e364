package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// NewStream is what a stream is created from.
type NewStream struct {
	Name string
	// Partitions is how many there are; Options.Partitions if 0.
	Partitions int32
	// Journals is how many journals they share; one if 0, and never more than
	// there are partitions.
	Journals int32
	// Replication is how many nodes have each journal; three if 0, or as many as there
	// are.
	Replication int32
	// Placement says, by journal, which nodes have it, the one that should lead it first; nil leaves it to the cluster. There
	// are as many journals as it names then, and Journals and Replication are not used.
	Placement [][]int32
	// Config holds settings that differ from the defaults.
	Config map[string]string
	// ValidateOnly checks all but creates nothing.
	ValidateOnly bool
}

func (n NewStream) stream(defaultPartitions int32) (*Stream, error) {
	s := &Stream{
		ID: newStreamID(), Name: n.Name,
		Partitions:    n.Partitions,
		Config:        maps.Clone(n.Config),
		CreatedMillis: time.Now().UnixMilli(),
	}
	if s.Partitions == 0 {
		s.Partitions = defaultPartitions
	}
	switch {
	case !ValidStreamName(s.Name):
		return nil, fmt.Errorf("%w: name %q: 1 to %d of a-z, A-Z, 0-9, '.', '_' and '-'", ErrInvalidStream, s.Name, maxStreamName)
	case s.Partitions < 1 || s.Partitions > maxPartitions:
		return nil, fmt.Errorf("%w: %d partitions, allowed are 1 to %d", ErrInvalidStream, s.Partitions, maxPartitions)
	}
	if err := CheckConfig(s.Config); err != nil {
		return nil, err
	}
	journals := n.Journals
	if len(n.Placement) > 0 {
		journals = int32(len(n.Placement))
	}
	return s, s.setJournals(journals)
}

// setJournals decides how many journals a new stream has; the setting and the
// field say the same.
func (s *Stream) setJournals(journals int32) error {
	if given, ok := s.Config[SettingJournals]; ok && journals == 0 {
		v, err := strconv.ParseInt(given, 10, 32)
		if err != nil {
			return fmt.Errorf("%w: %s=%q", ErrInvalidConfig, SettingJournals, given)
		}
		journals = int32(v)
	}
	if journals < 0 || journals > maxJournals {
		return fmt.Errorf("%w: %d journals, allowed are 1 to %d", ErrInvalidStream, journals, maxJournals)
	}
	s.Journals = min(max(journals, 1), s.Partitions)
	if s.Config == nil {
		s.Config = map[string]string{}
	}
	delete(s.Config, SettingJournals)
	if s.Journals > 1 {
		s.Config[SettingJournals] = strconv.Itoa(int(s.Journals))
	}
	return nil
}

// CreateStream creates a stream. Its journals are made when it is first used.
func (n *Node) CreateStream(ctx context.Context, new NewStream) (*Stream, error) {
	s, err := new.stream(n.opts.Partitions)
	if err != nil {
		return nil, err
	}
	if err := n.place(s, new.Replication, new.Placement); err != nil {
		return nil, err
	}
	if new.ValidateOnly {
		if _, taken := n.meta.Stream(s.Name); taken {
			return nil, ErrStreamExists
		}
		return s, nil
	}
	v, err := n.proposer.propose(ctx, command{CreateStream: &createStream{*s}})
	if err != nil {
		return nil, fmt.Errorf("creating stream %s: %w", s.Name, err)
	}
	return v.(*Stream), nil
}

// GrowStream gives a stream more partitions. Records that are there stay where
// they are; keys may go to other partitions from now on.
func (n *Node) GrowStream(ctx context.Context, id StreamID, partitions int32) error {
	if partitions > maxPartitions {
		return fmt.Errorf("%w: %d partitions, allowed are at most %d", ErrInvalidStream, partitions, maxPartitions)
	}
	_, err := n.proposer.propose(ctx, command{GrowStream: &growStream{id, partitions}})
	return err
}

// settledAtCreation are the settings that decide how a stream's journals are
// opened.
var settledAtCreation = []string{SettingJournals, SettingDurability}

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
func (n *Node) ConfigureStream(ctx context.Context, id StreamID, change ConfigChange) error {
	s, ok := n.meta.StreamByID(id)
	if !ok {
		return ErrUnknownStream
	}
	if err := CheckConfig(change.Set); err != nil {
		return err
	}
	set := maps.Clone(change.Set)
	if set == nil {
		set = map[string]string{}
	}
	for _, name := range settledAtCreation {
		if v, ok := change.Set[name]; ok && v != s.Value(name) {
			return fmt.Errorf("%w: %s can be set only when the stream is created", ErrInvalidConfig, name)
		}
		if v, given := s.Config[name]; change.Replace && given {
			set[name] = v // belongs to the stream for good
		}
	}
	for _, name := range change.Delete {
		if _, known := FindSetting(name); !known || slices.Contains(settledAtCreation, name) {
			return fmt.Errorf("%w: %q cannot be removed", ErrInvalidConfig, name)
		}
	}
	if change.ValidateOnly {
		return nil
	}
	_, err := n.proposer.propose(ctx, command{ConfigureStream: &configureStream{
		ID: id, Set: set, Delete: change.Delete, Replace: change.Replace,
	}})
	return err
}

// DeleteStream deletes a stream. When it returns the name is free and nobody can
// read or append any more; the files are removed then, by this run of the node
// or by the next.
func (n *Node) DeleteStream(ctx context.Context, id StreamID) error {
	_, err := n.proposer.propose(ctx, command{TombstoneStream: &tombstoneStream{id}})
	if err != nil {
		return err
	}
	n.wake()
	return nil
}
