package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// sourceCheckpoint is C of design decision 5: all records up to Position were
// acknowledged below Ends. What the journal holds of the source from Ends on may be
// emitted again.
type sourceCheckpoint struct {
	StreamID string          `json:"stream_id"`
	Position Position        `json:"position"`
	Ends     map[int32]int64 `json:"ends"`
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
		cursors[Partition{Stream: stream, Number: p}] = cursor{offset: end, epoch: -1}
	}
	first := Partition{Stream: stream}
	cursors[first] = cursor{offset: c.Ends[0], epoch: -1, state: state}
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
	return c, true, nil
}

// errJournalShorter is the cause of the StopError of the same name.
var errJournalShorter = errors.New("the journal ends before records that it has acknowledged: it was set back or lost")
