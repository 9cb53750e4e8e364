package pipeline

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Place says where in streams to begin or to stop, as people write it: a time, the
// start or end, or offsets.
type Place struct {
	// Time is an event time; zero where the place is given otherwise.
	Time time.Time
	// Start and End are the first record that is kept and the one after the last.
	Start, End bool
	// Offset is that of every partition; -1 where the place is given otherwise.
	Offset int64
	// Offsets are those of single partitions; nil where the place is given otherwise.
	Offsets map[Partition]int64
}

// ParsePlace reads "start", "end", a time in RFC 3339, one offset for all partitions
// ("120"), or the offsets of some ("shop.changes/0@120,shop.changes/1@88").
func ParsePlace(text string) (Place, error) {
	p := Place{Offset: -1}
	if text == "start" || text == "end" {
		p.Start, p.End = text == "start", text == "end"
		return p, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		p.Time = t.UTC()
		return p, nil
	}
	if offset, err := strconv.ParseInt(text, 10, 64); err == nil && offset >= 0 {
		p.Offset = offset
		return p, nil
	}
	p.Offsets = map[Partition]int64{}
	for one := range strings.SplitSeq(text, ",") {
		at, offset, err := parsePosition(strings.TrimSpace(one))
		if err != nil {
			return Place{}, fmt.Errorf("%q is no place: want start, end, a time such as 2026-09-01T00:00:00Z, an offset, or positions such as STREAM/PARTITION@OFFSET", text)
		}
		if _, twice := p.Offsets[at]; twice {
			return Place{}, fmt.Errorf("partition %s stands twice in %q", at, text)
		}
		p.Offsets[at] = offset
	}
	return p, nil
}

// Resolve returns the offset of each partition of the streams that the place means: for
// a time the first record whose time is not before it. An offset that is no longer
// kept, or not yet there, is an error that says which are. A partition that the place
// does not name begins at its start.
func (j *Journal) Resolve(ctx context.Context, p Place, streams ...string) (map[Partition]int64, error) {
	switch {
	case p.End:
		return j.Ends(ctx, streams...)
	case !p.Time.IsZero():
		return j.FirstAfter(ctx, p.Time, streams...)
	}
	starts, err := j.Starts(ctx, streams...)
	if err != nil || p.Start {
		return starts, err
	}
	ends, err := j.Ends(ctx, streams...)
	if err != nil {
		return nil, err
	}
	return p.within(starts, ends)
}

// within holds the place's offsets against what is kept.
func (p Place) within(starts, ends map[Partition]int64) (map[Partition]int64, error) {
	named := p.Offsets
	if p.Offset >= 0 {
		named = map[Partition]int64{}
		for at := range starts {
			named[at] = p.Offset
		}
	}
	out := maps.Clone(starts)
	for at, offset := range named {
		start, known := starts[at]
		if !known {
			return nil, fmt.Errorf("there is no partition %s here", at)
		}
		if offset < start || offset > ends[at] {
			return nil, fmt.Errorf("%s has offsets %d to %d: there is no %d", at, start, ends[at], offset)
		}
		out[at] = offset
	}
	return out, nil
}
