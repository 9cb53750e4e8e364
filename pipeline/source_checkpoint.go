package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// sourceCheckpoint is where a source goes on: all records up to Position were acknowledged below Ends. What the journal
// holds of the source from Ends on may be emitted again. Guarantee 6; docs/decisions/20261129-resume-by-positions.md.
type sourceCheckpoint struct {
	StreamID string          `json:"stream_id"`
	Position Position        `json:"position"`
	Ends     map[int32]int64 `json:"ends"`
	// Epochs are, by partition, leader epochs under which all below Ends was in the journal; they are kept as those of the
	// group's offsets. Partitions are missing where it is not known.
	Epochs map[int32]int32 `json:"-"`
	// Stamp is at or above all stamps that the source has given or promised.
	Stamp int64 `json:"stamp"`
	// Pending are positions below Ends that the source may emit again all the same.
	Pending []positionID `json:"pending,omitempty"`
}

// sourceGroup is the consumer group in whose offsets a source keeps its checkpoint.
func sourceGroup(pipeline, source string) string {
	return "daybook.source." + pipeline + "." + source
}

// saveSource stores a source's checkpoint. The ends are the group's offsets, so that
// any Kafka tool sees how far the source is; the checkpoint as a whole is beside the
// one of partition 0.
func (j *Journal) saveSource(ctx context.Context, group, stream string, c sourceCheckpoint) error {
	state, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and numbers
	}
	cursors := map[Partition]cursor{}
	for p, end := range c.Ends {
		cursors[Partition{Stream: stream, Number: p}] = cursor{offset: end, epoch: c.epochOf(p)}
	}
	first := Partition{Stream: stream}
	cursors[first] = cursor{offset: c.Ends[0], epoch: c.epochOf(0), state: state}
	return j.saveCursors(ctx, group, cursors)
}

// loadSource returns a source's checkpoint; ok is false where there is none.
func (j *Journal) loadSource(ctx context.Context, group, stream string) (c sourceCheckpoint, ok bool, err error) {
	cursors, err := j.loadCursors(ctx, group, stream)
	if err != nil {
		return c, false, err
	}
	state := cursors[Partition{Stream: stream}].state
	if state == nil {
		return c, false, nil
	}
	if err := json.Unmarshal(state, &c); err != nil {
		return c, false, fmt.Errorf("decoding the checkpoint of group %s: %w", group, err)
	}
	c.Epochs = map[int32]int32{}
	for p, at := range cursors {
		if at.epoch >= 0 {
			c.Epochs[p.Number] = at.epoch
		}
	}
	return c, true, nil
}

func (c *sourceCheckpoint) epochOf(p int32) int32 {
	if e, ok := c.Epochs[p]; ok {
		return e
	}
	return -1
}

// mark is the checkpoint's place in the journal, without partitions of which holds says that their history needs no look.
func (c *sourceCheckpoint) mark(stream string, holds func(partition, epoch int32) bool) mark {
	m := mark{offsets: map[Partition]int64{}}
	for p, e := range c.Epochs {
		if end, ok := c.Ends[p]; ok && !holds(p, e) {
			at := Partition{Stream: stream, Number: p}
			m.offsets[at] = end
			m.noteEpoch(at, e)
		}
	}
	return m
}

// errJournalShorter is the cause of the StopError of the same name.
var errJournalShorter = errors.New("the journal ends before records that it has acknowledged: it was set back or lost")
