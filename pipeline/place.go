package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	// Offsets are given by partition; the key -1 stands for every other one.
	Offsets map[int32]int64
	// Stream is the only stream that Offsets speak of; empty for any.
	Stream string
}

// everyPartition is the key in Place.Offsets of an offset without a partition.
const everyPartition = -1

// ParsePlace reads "start", "end", a time in RFC 3339, an offset for all partitions
// ("120"), or offsets for some ("0:120,1:88"); a stream's name and a slash may stand
// before offsets.
func ParsePlace(text string) (Place, error) {
	switch text {
	case "":
		return Place{}, errors.New("says no place: want start, end, a time, or a position")
	case "start":
		return Place{Start: true}, nil
	case "end":
		return Place{End: true}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return Place{Time: t.UTC()}, nil
	}
	p := Place{Offsets: map[int32]int64{}}
	offsets := text
	if stream, rest, found := strings.Cut(text, "/"); found {
		p.Stream, offsets = stream, rest
	}
	for part := range strings.SplitSeq(offsets, ",") {
		number, offset, found := strings.Cut(part, ":")
		partition := int64(everyPartition)
		var err error
		if found {
			partition, err = strconv.ParseInt(number, 10, 32)
		} else {
			offset = part
		}
		at, offsetErr := strconv.ParseInt(offset, 10, 64)
		if err != nil || offsetErr != nil || at < 0 || found && partition < 0 {
			return Place{}, fmt.Errorf("%q is no place: want start, end, a time such as 2026-09-01T00:00:00Z, an offset (120), or offsets by partition (0:120,1:88)", text)
		}
		p.Offsets[int32(partition)] = at
	}
	return p, nil
}

// Resolve returns the offset of each partition of the streams that the place means: for
// a time the first record whose time is not before it. An offset that is no longer
// kept, or not yet there, is an error that says which are.
func (j *Journal) Resolve(ctx context.Context, p Place, streams ...string) (map[Partition]int64, error) {
	switch {
	case p.Start:
		return j.Starts(ctx, streams...)
	case p.End:
		return j.Ends(ctx, streams...)
	case !p.Time.IsZero():
		return j.FirstAfter(ctx, p.Time, streams...)
	case p.Stream != "" && !slices.Contains(streams, p.Stream):
		return nil, fmt.Errorf("the position names stream %s, want one of %s", p.Stream, strings.Join(streams, ", "))
	}
	starts, err := j.Starts(ctx, streams...)
	if err != nil {
		return nil, err
	}
	ends, err := j.Ends(ctx, streams...)
	if err != nil {
		return nil, err
	}
	return p.within(starts, ends)
}

// within picks the offsets of a Place that names them, and holds them against what is
// kept. A partition that it does not speak of begins at its start.
func (p Place) within(starts, ends map[Partition]int64) (map[Partition]int64, error) {
	out := maps.Clone(starts)
	for at, start := range starts {
		if p.Stream != "" && at.Stream != p.Stream {
			continue
		}
		offset, given := p.Offsets[at.Number]
		if !given {
			offset, given = p.Offsets[everyPartition]
		}
		if !given {
			continue
		}
		if offset < start || offset > ends[at] {
			return nil, fmt.Errorf("%s/%d has offsets %d to %d: there is no %d", at.Stream, at.Number, start, ends[at], offset)
		}
		out[at] = offset
	}
	for number := range p.Offsets {
		if number != everyPartition && !slices.ContainsFunc(slices.Collect(maps.Keys(starts)), func(at Partition) bool { return at.Number == number }) {
			return nil, fmt.Errorf("there is no partition %d", number)
		}
	}
	return out, nil
}
