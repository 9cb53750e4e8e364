package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// partition returns the partition that the record is in.
func (r *Record) partition() Partition {
	return Partition{Stream: r.Stream, Number: r.Partition}
}

// String returns "stream/number".
func (p Partition) String() string { return p.Stream + "/" + strconv.Itoa(int(p.Number)) }

// MarshalText implements encoding.TextMarshaler, so that a map of partitions can be
// written as JSON.
func (p Partition) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads "stream/number".
func (p *Partition) UnmarshalText(text []byte) error {
	stream, number, ok := strings.Cut(string(text), "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if !ok || stream == "" || err != nil || n < 0 {
		return fmt.Errorf("%q is no partition: want stream/number", text)
	}
	p.Stream, p.Number = stream, int32(n)
	return nil
}

// partitionsOf returns all partitions of the streams, sorted.
func partitionsOf(streams map[string]StreamInfo) []Partition {
	all := map[Partition]int64{}
	for _, s := range streams {
		for n := range s.Partitions {
			all[Partition{Stream: s.Name, Number: int32(n)}] = 0
		}
	}
	return sortedPartitions(all)
}

func sortedPartitions(offsets map[Partition]int64) []Partition {
	return slices.SortedFunc(maps.Keys(offsets), func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Number, b.Number))
	})
}
