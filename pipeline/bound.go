package pipeline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bound is one end of a stretch of history: a time, or offsets of partitions. The zero
// Bound is none.
type Bound struct {
	// Time is an event time; zero where the bound is one of offsets.
	Time time.Time
	// Offsets of all partitions, nil where the bound is a time.
	Offsets map[Partition]int64
}

// IsZero reports whether there is no bound.
func (b Bound) IsZero() bool { return b.Time.IsZero() && b.Offsets == nil }

func parsePosition(text string) (p Partition, offset int64, err error) {
	name, at, _ := strings.Cut(text, "@")
	if offset, err = strconv.ParseInt(at, 10, 64); err == nil && offset < 0 {
		err = errors.New("negative")
	}
	if err = errors.Join(err, p.UnmarshalText([]byte(name))); err != nil {
		return p, 0, fmt.Errorf("%q is no position: want STREAM/PARTITION@OFFSET", text)
	}
	return p, offset, nil
}

// covers returns an error unless the bound, where it is one of offsets, names exactly
// the partitions of the streams.
func (b Bound) covers(parts []Partition) error {
	if b.Offsets == nil {
		return nil
	}
	known := map[Partition]bool{}
	for _, p := range parts {
		known[p] = true
		if _, ok := b.Offsets[p]; !ok {
			return fmt.Errorf("the position says nothing of %s: name every partition", p)
		}
	}
	for p := range b.Offsets {
		if !known[p] {
			return fmt.Errorf("the position names %s, which the sink does not read", p)
		}
	}
	return nil
}
