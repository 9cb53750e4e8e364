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

// ParseBound reads a time in RFC 3339 ("2026-09-01T00:00:00Z") or positions
// ("shop.changes/0@1200", several with commas).
func ParseBound(text string) (Bound, error) {
	if text == "" {
		return Bound{}, nil
	}
	if !strings.Contains(text, "@") {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return Bound{}, fmt.Errorf("%q is neither a time such as 2026-09-01T00:00:00Z nor a position such as STREAM/PARTITION@OFFSET", text)
		}
		return Bound{Time: t.UTC()}, nil
	}
	b := Bound{Offsets: map[Partition]int64{}}
	for _, one := range strings.Split(text, ",") {
		p, o, err := parsePosition(strings.TrimSpace(one))
		if err != nil {
			return Bound{}, err
		}
		if _, twice := b.Offsets[p]; twice {
			return Bound{}, fmt.Errorf("partition %s stands twice in %q", p, text)
		}
		b.Offsets[p] = o
	}
	return b, nil
}

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

// String returns the bound as ParseBound reads it.
func (b Bound) String() string {
	if b.Offsets == nil {
		if b.Time.IsZero() {
			return ""
		}
		return b.Time.Format(time.RFC3339Nano)
	}
	var parts []string
	for _, p := range sortedPartitions(b.Offsets) {
		parts = append(parts, fmt.Sprintf("%s@%d", p, b.Offsets[p]))
	}
	return strings.Join(parts, ",")
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
