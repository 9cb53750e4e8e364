package pipeline

import (
	"encoding/json"
	"fmt"
)

// mark is a place in the input at which a sink can go on.
type mark struct {
	offsets map[Partition]int64
	// epochs are the leader epochs of the records before the offsets, where they are known.
	epochs map[Partition]int32
	// states are those of reorderers, each beside the first of its partitions.
	states map[Partition][]byte
}

// checkpoint returns the mark as a sink stores it.
func (m mark) checkpoint() Checkpoint {
	c := Checkpoint{Offsets: m.offsets, Epochs: m.epochs}
	if len(m.states) > 0 {
		b, err := json.Marshal(m.states)
		if err != nil {
			panic(err) // texts and bytes
		}
		c.Reorder = b
	}
	return c
}

// markOf is the reverse of checkpoint.
func markOf(c Checkpoint) (mark, error) {
	m := mark{offsets: c.Offsets, epochs: c.Epochs}
	if len(c.Reorder) > 0 {
		if err := json.Unmarshal(c.Reorder, &m.states); err != nil {
			return mark{}, fmt.Errorf("decoding the checkpoint at the destination: %w", err)
		}
	}
	return m, nil
}

// epochOf is the leader epoch of the record before the offset, or -1.
func (m mark) epochOf(p Partition) int32 {
	if e, ok := m.epochs[p]; ok {
		return e
	}
	return -1
}

func (m *mark) noteEpoch(p Partition, epoch int32) {
	if epoch < 0 {
		return
	}
	if m.epochs == nil {
		m.epochs = map[Partition]int32{}
	}
	m.epochs[p] = epoch
}

// adopt takes over where another mark has come with a partition.
func (m *mark) adopt(p Partition, from mark) {
	m.offsets[p] = from.offsets[p]
	m.noteEpoch(p, from.epochOf(p))
	state := from.states[p]
	if state == nil {
		return
	}
	if m.states == nil {
		m.states = map[Partition][]byte{}
	}
	m.states[p] = state
}

// cursorState is what a sink's offset commit carries beside the offset.
type cursorState struct {
	StreamID string `json:"stream_id"`
	Reorder  []byte `json:"reorder,omitempty"`
}

// cursors returns the mark as a consumer group stores it.
func (m mark) cursors(streams map[string]StreamInfo) map[Partition]cursor {
	out := map[Partition]cursor{}
	for p, o := range m.offsets {
		b, err := json.Marshal(cursorState{StreamID: streams[p.Stream].ID, Reorder: m.states[p]})
		if err != nil {
			panic(err) // texts and bytes
		}
		out[p] = cursor{offset: o, epoch: m.epochOf(p), state: b}
	}
	return out
}

// markFrom is the reverse of cursors. Offsets of a stream that was made again since
// mean nothing: that is a StopError.
func markFrom(cursors map[Partition]cursor, streams map[string]StreamInfo, group string) (mark, error) {
	m := mark{offsets: map[Partition]int64{}, states: map[Partition][]byte{}}
	for p, c := range cursors {
		m.offsets[p] = c.offset
		m.noteEpoch(p, c.epoch)
		if c.state == nil {
			continue // set by another tool: the offset alone counts
		}
		var s cursorState
		if err := json.Unmarshal(c.state, &s); err != nil {
			return mark{}, fmt.Errorf("decoding the cursor of group %s in %s: %w", group, p, err)
		}
		if s.StreamID != streams[p.Stream].ID {
			return mark{}, &StopError{
				Code: "stream-replaced", Where: fmt.Sprintf("stream %s, group %s", p.Stream, group),
				Err: fmt.Errorf("the cursor belongs to a stream of the same name (%s) that was deleted", s.StreamID),
				Fix: "give the sink another name, so that it starts at the beginning of the new stream",
			}
		}
		if s.Reorder != nil {
			m.states[p] = s.Reorder
		}
	}
	return m, nil
}
