package pipeline

import (
	"context"
	"slices"
)

// SinkCursor returns the cursor of a sink as the journal holds it, and how many offsets
// of its streams lie behind it (see SinkStatus.Behind). A sink that keeps its cursor at its destination leaves a
// copy here, which may be a little old. Streams that are not there yet are left out.
func (j *Journal) SinkCursor(ctx context.Context, pipeline string, sink *SinkEntry) (at map[Partition]int64, behind int64, err error) {
	existing, err := j.Streams(ctx)
	if err != nil {
		return nil, 0, err
	}
	streams := slices.DeleteFunc(slices.Clone(sink.Streams), func(s string) bool { return !slices.Contains(existing, s) })
	if len(streams) == 0 {
		return nil, 0, nil
	}
	if at, err = j.Starts(ctx, streams...); err != nil {
		return nil, 0, err
	}
	held, err := j.loadCursors(ctx, sinkGroup(pipeline, sink.Name), streams...)
	if err != nil {
		return nil, 0, err
	}
	ends, err := j.CommittedEnds(ctx, streams...)
	if err != nil {
		return nil, 0, err
	}
	for p := range at {
		if c, ok := held[p]; ok {
			at[p] = c.offset
		}
		behind += max(ends[p]-at[p], 0)
	}
	return at, behind, nil
}
