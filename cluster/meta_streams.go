package cluster

import (
	"maps"
	"slices"
	"strings"
)

type createStream struct {
	Stream Stream `json:"stream"`
}

type growStream struct {
	ID         StreamID `json:"id"`
	Partitions int32    `json:"partitions"`
}

// configureStream sets and removes settings of a stream. Values were checked by
// the proposer.
type configureStream struct {
	ID     StreamID          `json:"id"`
	Set    map[string]string `json:"set,omitempty"`
	Delete []string          `json:"delete,omitempty"`
	// Replace drops every setting that is not in Set.
	Replace bool `json:"replace,omitempty"`
}

// tombstoneStream takes a stream's name away; its files go afterwards, and only
// then is it forgotten. A crash in between leaves a record of what to remove.
type tombstoneStream struct {
	ID StreamID `json:"id"`
}

// forgetStream says that a node has removed the files of a deleted stream. The stream is forgotten when all have.
type forgetStream struct {
	ID   StreamID `json:"id"`
	Node int32    `json:"node,omitempty"` // 0: the only one
}

func (m *Meta) createStream(c *createStream) result {
	s := c.Stream
	if _, taken := m.streams[s.Name]; taken {
		return result{err: ErrStreamExists}
	}
	if _, taken := m.byID[s.ID]; taken {
		return result{err: ErrStreamExists}
	}
	// Two names that differ only in '.' and '_' are one name in Kafka's metrics;
	// its brokers refuse the second, and so do we.
	for name := range m.streams {
		if strings.ReplaceAll(name, ".", "_") == strings.ReplaceAll(s.Name, ".", "_") {
			return result{err: ErrStreamNameCollides}
		}
	}
	for _, replicas := range s.Placement {
		if err := m.checkNodes(nodesOf(replicas)); err != nil {
			return result{err: err}
		}
	}
	m.putStream(&s)
	return result{value: &s}
}

func (m *Meta) growStream(c *growStream) result {
	old, err := m.liveStream(c.ID)
	if err != nil {
		return result{err: err}
	}
	if c.Partitions <= old.Partitions {
		return result{err: ErrNotMorePartitions}
	}
	s := *old
	s.Partitions = c.Partitions
	m.putStream(&s)
	return result{value: &s}
}

func (m *Meta) configureStream(c *configureStream) result {
	old, err := m.liveStream(c.ID)
	if err != nil {
		return result{err: err}
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
	return result{value: &s}
}

func (m *Meta) tombstoneStream(c *tombstoneStream) result {
	old, err := m.liveStream(c.ID)
	if err != nil {
		return result{err: err}
	}
	s := *old
	s.Deleting = true
	delete(m.streams, s.Name)
	m.byID[s.ID] = &s
	for _, g := range m.groups {
		g.dropStream(s.ID)
	}
	m.layoutChanged()
	return result{value: &s}
}

func (m *Meta) forgetStream(c *forgetStream) result {
	s, ok := m.byID[c.ID]
	if !ok {
		return result{err: ErrUnknownStream}
	}
	if !s.Deleting {
		return result{err: ErrStreamInUse}
	}
	if c.Node != 0 {
		m.confirmRemoval(s, c.Node)
	} else {
		delete(m.byID, c.ID)
	}
	m.layoutChanged()
	return result{}
}

func (m *Meta) putStream(s *Stream) {
	m.streams[s.Name] = s
	m.byID[s.ID] = s
	m.layoutChanged()
}

func (m *Meta) liveStream(id StreamID) (*Stream, error) {
	s, ok := m.byID[id]
	if !ok || s.Deleting {
		return nil, ErrUnknownStream
	}
	return s, nil
}

// Stream returns the stream of that name.
func (m *Meta) Stream(name string) (*Stream, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, ok := m.streams[name]
	return s, ok
}

// StreamByID returns the stream with that id, unless it is being deleted.
func (m *Meta) StreamByID(id StreamID) (*Stream, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, err := m.liveStream(id)
	return s, err == nil
}

// Streams returns all streams that are not being deleted, sorted by name.
func (m *Meta) Streams() []*Stream {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.streams), func(a, b *Stream) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// known returns every stream that may have files, those being deleted included.
func (m *Meta) known() map[StreamID]*Stream {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.byID)
}
