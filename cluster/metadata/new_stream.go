package metadata

import (
	"fmt"
	"maps"
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

// Stream is the stream to be created, checked but not placed. It gets its id and the time of now.
func (n NewStream) Stream(defaultPartitions int32) (*Stream, error) {
	s := &Stream{
		ID: NewStreamID(), Name: n.Name,
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
	case s.Partitions < 1 || s.Partitions > MaxPartitions:
		return nil, fmt.Errorf("%w: %d partitions, allowed are 1 to %d", ErrInvalidStream, s.Partitions, MaxPartitions)
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
