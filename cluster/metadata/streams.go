package metadata

import (
	"maps"
	"slices"
	"strings"
)

// CreateStream adds a stream. It is refused if the name is taken, or differs from a taken one only in dots and underscores.
type CreateStream struct {
	Stream Stream `json:"stream"`
}

// GrowStream gives a stream more partitions.
type GrowStream struct {
	ID         StreamID `json:"id"`
	Partitions int32    `json:"partitions"`
}

// ConfigureStream sets and removes settings of a stream. Values were checked by
// the proposer.
type ConfigureStream struct {
	ID     StreamID          `json:"id"`
	Set    map[string]string `json:"set,omitempty"`
	Delete []string          `json:"delete,omitempty"`
	// Replace drops every setting that is not in Set.
	Replace bool `json:"replace,omitempty"`
}

// TombstoneStream takes a stream's name away; its files go afterwards, and only
// then is it forgotten. A crash in between leaves a record of what to remove.
type TombstoneStream struct {
	ID StreamID `json:"id"`
}

// ForgetStream says that a node has removed the files of a deleted stream. The stream is forgotten when all have.
type ForgetStream struct {
	ID   StreamID `json:"id"`
	Node int32    `json:"node,omitempty"` // 0: the only one
}

func (m *State) createStream(c *CreateStream) Result {
	s := c.Stream
	if _, taken := m.streams[s.Name]; taken {
		return Result{Err: ErrStreamExists}
	}
	if _, taken := m.byID[s.ID]; taken {
		return Result{Err: ErrStreamExists}
	}
	// Two names that differ only in '.' and '_' are one name in Kafka's metrics;
	// its brokers refuse the second, and so do we.
	for name := range m.streams {
		if strings.ReplaceAll(name, ".", "_") == strings.ReplaceAll(s.Name, ".", "_") {
			return Result{Err: ErrStreamNameCollides}
		}
	}
	for _, replicas := range s.Placement {
		if err := m.checkNodes(NodesOf(replicas)); err != nil {
			return Result{Err: err}
		}
	}
	m.putStream(&s)
	return Result{Value: &s}
}

func (m *State) growStream(c *GrowStream) Result {
	old, err := m.liveStream(c.ID)
	if err != nil {
		return Result{Err: err}
	}
	if c.Partitions <= old.Partitions {
		return Result{Err: ErrNotMorePartitions}
	}
	s := *old
	s.Partitions = c.Partitions
	m.putStream(&s)
	return Result{Value: &s}
}

func (m *State) configureStream(c *ConfigureStream) Result {
	old, err := m.liveStream(c.ID)
	if err != nil {
		return Result{Err: err}
	}
	s := *old
	s.Config = maps.Clone(old.Config)
	if c.Replace || s.Config == nil {
		s.Config = map[string]string{}
	}
	for _, key := range c.Delete {
		delete(s.Config, key)
	}
	maps.Copy(s.Config, c.Set)
	m.putStream(&s)
	return Result{Value: &s}
}

func (m *State) tombstoneStream(c *TombstoneStream) Result {
	old, err := m.liveStream(c.ID)
	if err != nil {
		return Result{Err: err}
	}
	s := *old
	s.Deleting = true
	delete(m.streams, s.Name)
	m.byID[s.ID] = &s
	for _, g := range m.groups {
		g.dropStream(s.ID)
	}
	m.layoutChanged()
	return Result{Value: &s}
}

func (m *State) forgetStream(c *ForgetStream) Result {
	s, ok := m.byID[c.ID]
	if !ok {
		return Result{Err: ErrUnknownStream}
	}
	if !s.Deleting {
		return Result{Err: ErrStreamInUse}
	}
	if c.Node != 0 {
		m.confirmRemoval(s, c.Node)
	} else {
		delete(m.byID, c.ID)
	}
	m.layoutChanged()
	return Result{}
}

func (m *State) putStream(s *Stream) {
	m.streams[s.Name] = s
	m.byID[s.ID] = s
	m.layoutChanged()
}

func (m *State) liveStream(id StreamID) (*Stream, error) {
	s, ok := m.byID[id]
	if !ok || s.Deleting {
		return nil, ErrUnknownStream
	}
	return s, nil
}

// Stream returns the stream of that name.
func (m *State) Stream(name string) (*Stream, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, ok := m.streams[name]
	return s, ok
}

// StreamByID returns the stream with that id, unless it is being deleted.
func (m *State) StreamByID(id StreamID) (*Stream, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, err := m.liveStream(id)
	return s, err == nil
}

// Streams returns all streams that are not being deleted, sorted by name.
func (m *State) Streams() []*Stream {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.streams), func(a, b *Stream) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Known returns every stream that may have files, those being deleted included.
func (m *State) Known() map[StreamID]*Stream {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.byID)
}
