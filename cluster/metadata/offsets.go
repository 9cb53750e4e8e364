package metadata

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// HoldingGroupPrefix begins the names of consumer groups whose committed offsets
// hold retention: records such a group has not passed are kept, whatever the
// stream's retention says. Pipelines name the groups of their sinks so.
const HoldingGroupPrefix = "daybook."

// StreamPartition names one partition of a stream. The stream's id, not its
// name, so that a stream created again under an old name inherits nothing.
type StreamPartition struct {
	Stream    StreamID `json:"stream"`
	Partition int32    `json:"partition"`
	// Tag is set for a consumer of stream@tag: what it has passed is not what a
	// consumer of the whole stream has.
	Tag string `json:"tag,omitempty"`
}

// StreamJournal names one journal of a stream.
type StreamJournal struct {
	Stream  StreamID `json:"stream"`
	Journal int32    `json:"journal"`
}

// GroupOffset is what a consumer group committed for one partition.
type GroupOffset struct {
	Stream    StreamID `json:"stream"`
	Partition int32    `json:"partition"`
	Tag       string   `json:"tag,omitempty"`
	Offset    int64    `json:"offset"`
	// LeaderEpoch is the epoch of the last record consumed, or -1.
	LeaderEpoch int32 `json:"leader_epoch"`
	// Metadata is the client's own and comes back byte for byte.
	Metadata []byte `json:"metadata,omitempty"`
	// CommitMillis is when the commit was proposed, in Unix milliseconds.
	CommitMillis int64 `json:"commit_ms"`
	// Order rises with every offset that the group is given, by a commit or within a transaction. The state sets it.
	Order uint64 `json:"order,omitempty"`
}

func (o GroupOffset) partition() StreamPartition {
	return StreamPartition{Stream: o.Stream, Partition: o.Partition, Tag: o.Tag}
}

// CommitOffsets moves a group to new positions.
type CommitOffsets struct {
	Group   string        `json:"group"`
	Offsets []GroupOffset `json:"offsets"`
	// Term is the coordinator's: in an entry of any other it has no effect. 0 is always in its term.
	Term uint64 `json:"term,omitempty"`
}

// DeleteOffsets takes positions of a group away.
type DeleteOffsets struct {
	Group      string        `json:"group"`
	Partitions []GroupOffset `json:"partitions"`     // only stream and partition count
	Term       uint64        `json:"term,omitempty"` // as CommitOffsets.Term
}

// DeleteGroup takes all that is known of a group away.
type DeleteGroup struct {
	Group string `json:"group"`
	Term  uint64 `json:"term,omitempty"` // as CommitOffsets.Term
}

// PendTxnOffsets adds offsets to an open transaction: they take effect when it
// commits.
type PendTxnOffsets struct {
	TransactionalID string        `json:"transactional_id"`
	ProducerID      int64         `json:"producer_id"`
	Epoch           int16         `json:"epoch"`
	Group           string        `json:"group"`
	Offsets         []GroupOffset `json:"offsets"`
	Coordinator     uint64        `json:"term,omitempty"` // as CommitOffsets.Term
}

// groupOffsets is one group's state. pending holds, by producer id, what open
// transactions have added. order is that of the latest offset.
type groupOffsets struct {
	order   uint64
	offsets map[StreamPartition]GroupOffset
	pending map[int64]map[StreamPartition]GroupOffset
}

func newGroupOffsets() *groupOffsets {
	return &groupOffsets{
		offsets: map[StreamPartition]GroupOffset{},
		pending: map[int64]map[StreamPartition]GroupOffset{},
	}
}

func (g *groupOffsets) empty() bool { return len(g.offsets) == 0 && len(g.pending) == 0 }

func (g *groupOffsets) dropStream(id StreamID) {
	other := func(p StreamPartition, _ GroupOffset) bool { return p.Stream == id }
	maps.DeleteFunc(g.offsets, other)
	for producer, offsets := range g.pending {
		maps.DeleteFunc(offsets, other)
		if len(offsets) == 0 {
			delete(g.pending, producer)
		}
	}
}

func (m *State) group(name string) *groupOffsets {
	g, ok := m.groups[name]
	if !ok {
		g = newGroupOffsets()
		m.groups[name] = g
	}
	return g
}

func (m *State) commitOffsets(c *CommitOffsets) Result {
	g := m.group(c.Group)
	for _, o := range c.Offsets {
		// The stream may have been deleted since the commit was proposed.
		if _, err := m.liveStream(o.Stream); err == nil {
			g.offsets[o.partition()] = g.ordered(o)
		}
	}
	return Result{}
}

// ordered is the offset as the group's latest.
func (g *groupOffsets) ordered(o GroupOffset) GroupOffset {
	g.order++
	o.Order = g.order
	return o
}

func (m *State) deleteOffsets(c *DeleteOffsets) Result {
	if g, ok := m.groups[c.Group]; ok {
		for _, p := range c.Partitions {
			delete(g.offsets, p.partition())
		}
	}
	return Result{}
}

func (m *State) deleteGroup(c *DeleteGroup) Result {
	if _, ok := m.groups[c.Group]; !ok {
		return Result{Err: ErrUnknownGroup}
	}
	delete(m.groups, c.Group)
	return Result{}
}

func (m *State) pendTxnOffsets(c *PendTxnOffsets) Result {
	t, ok := m.transactions[c.TransactionalID]
	switch {
	case !ok:
		return Result{Err: ErrUnknownTransaction}
	case t.ProducerID != c.ProducerID || t.Epoch != c.Epoch:
		return Result{Err: ErrProducerFenced}
	case t.State != TxnOngoing || !slices.Contains(t.Groups, c.Group):
		return Result{Err: ErrTransactionState}
	}
	g := m.group(c.Group)
	pending := g.pending[c.ProducerID]
	if pending == nil {
		pending = map[StreamPartition]GroupOffset{}
		g.pending[c.ProducerID] = pending
	}
	for _, o := range c.Offsets {
		pending[o.partition()] = g.ordered(o)
	}
	return Result{}
}

// settle makes a producer's pending offsets count, or drops them. One that was given before the offset that counts was does
// not: a commit of today is not undone by the end of a transaction of yesterday. The caller holds mu.
func (m *State) settle(groups []string, producerID int64, commit bool) {
	for _, name := range groups {
		g, ok := m.groups[name]
		if !ok {
			continue
		}
		if commit {
			for p, o := range g.pending[producerID] {
				if _, err := m.liveStream(o.Stream); err == nil && o.Order >= g.offsets[p].Order {
					g.offsets[p] = o
				}
			}
		}
		delete(g.pending, producerID)
		if g.empty() {
			delete(m.groups, name)
		}
	}
}

// GroupOffset returns what a group committed for a partition. unstable says that
// an open transaction has added another offset for it.
func (m *State) GroupOffset(group string, p StreamPartition) (offset GroupOffset, ok, unstable bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	g, known := m.groups[group]
	if !known {
		return GroupOffset{}, false, false
	}
	for _, pending := range g.pending {
		if _, found := pending[p]; found {
			unstable = true
		}
	}
	offset, ok = g.offsets[p]
	return offset, ok, unstable
}

// GroupPartitions returns the partitions for which a group has an offset,
// committed or pending.
func (m *State) GroupPartitions(group string) []StreamPartition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	g, ok := m.groups[group]
	if !ok {
		return nil
	}
	all := maps.Clone(g.offsets)
	for _, pending := range g.pending {
		maps.Copy(all, pending)
	}
	return slices.Collect(maps.Keys(all))
}

// Groups returns the names of the groups that have offsets, sorted.
func (m *State) Groups() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.groups))
}

// HasGroup reports whether the group has offsets, committed or pending.
func (m *State) HasGroup(group string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, ok := m.groups[group]
	return ok
}

// Held returns, by partition, the lowest offset that a holding group committed.
func (m *State) Held(stream StreamID) map[int32]int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	lowest := map[int32]int64{}
	for name, g := range m.groups {
		if !strings.HasPrefix(name, HoldingGroupPrefix) {
			continue
		}
		for p, o := range g.offsets {
			if p.Stream != stream {
				continue
			}
			if old, ok := lowest[p.Partition]; !ok || o.Offset < old {
				lowest[p.Partition] = o.Offset
			}
		}
	}
	return lowest
}

// Holder is a group that holds retention of a partition.
type Holder struct {
	Group     string
	Partition StreamPartition
	Offset    int64
}

// IdleHolders returns the holding groups whose offsets for a stream are older
// than since, sorted by group and partition.
func (m *State) IdleHolders(stream StreamID, since time.Time) []Holder {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var idle []Holder
	for name, g := range m.groups {
		if !strings.HasPrefix(name, HoldingGroupPrefix) {
			continue
		}
		for p, o := range g.offsets {
			if p.Stream == stream && o.CommitMillis < since.UnixMilli() {
				idle = append(idle, Holder{name, p, o.Offset})
			}
		}
	}
	slices.SortFunc(idle, func(a, b Holder) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), cmp.Compare(a.Partition.Partition, b.Partition.Partition))
	})
	return idle
}

// groupImage is a group in a snapshot.
type groupImage struct {
	Name    string         `json:"name"`
	Order   uint64         `json:"order,omitempty"`
	Offsets []GroupOffset  `json:"offsets"`
	Pending []pendingImage `json:"pending,omitempty"`
}

type pendingImage struct {
	ProducerID int64         `json:"producer_id"`
	Offsets    []GroupOffset `json:"offsets"`
}

func (g *groupOffsets) image(name string) groupImage {
	image := groupImage{Name: name, Order: g.order, Offsets: sortedOffsets(g.offsets)}
	for _, id := range slices.Sorted(maps.Keys(g.pending)) {
		image.Pending = append(image.Pending, pendingImage{id, sortedOffsets(g.pending[id])})
	}
	return image
}

func (i groupImage) state() *groupOffsets {
	g := newGroupOffsets()
	g.order = i.Order
	for _, o := range i.Offsets {
		g.offsets[o.partition()] = o
	}
	for _, p := range i.Pending {
		g.pending[p.ProducerID] = map[StreamPartition]GroupOffset{}
		for _, o := range p.Offsets {
			g.pending[p.ProducerID][o.partition()] = o
		}
	}
	return g
}

func sortedOffsets(offsets map[StreamPartition]GroupOffset) []GroupOffset {
	return slices.SortedFunc(maps.Values(offsets), func(a, b GroupOffset) int {
		return cmp.Or(strings.Compare(a.Stream.String(), b.Stream.String()), cmp.Compare(a.Partition, b.Partition))
	})
}
