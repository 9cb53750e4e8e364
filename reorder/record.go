package reorder

import "math"

// MinTime stands for minus infinity: the watermark before anything raised it.
const MinTime int64 = math.MinInt64

// MaxTime stands for plus infinity: the watermark after the end of the input.
const MaxTime int64 = math.MaxInt64

// A Partition is the handle of an assigned partition. Handles are dense and
// start at 0 in the order of assignment.
type Partition int32

// A Record is what goes into a Buffer.
type Record[P any] struct {
	Partition Partition
	// Source names the producer inside the partition (a host, a database). Empty
	// means the partition itself is the source.
	Source string
	// Position is the record's offset; it rises within a partition.
	Position int64
	// Stamp is the append stamp J in µs: not negative, not falling in canonical
	// order. A stamp below the clock counts as the clock.
	Stamp int64
	// Time is the event time in µs UTC.
	Time int64
	// Size is the number of bytes Payload stands for; it counts toward CapBytes.
	Size    uint32
	Payload P
}

// A Kind says which output an Item belongs to.
type Kind uint8

const (
	// Main records are in order.
	Main Kind = iota
	// Late records arrived below the watermark (Options.Late = Side).
	Late
	// Quarantine records have an implausible event time (Options.Implausible = Side).
	Quarantine
)

// String returns the name used in configuration and metrics.
func (k Kind) String() string {
	switch k {
	case Main:
		return "main"
	case Late:
		return "late"
	case Quarantine:
		return "quarantine"
	}
	return "unknown"
}

// Flags tell how an Item came to be where it is.
type Flags uint8

const (
	// Forced: released by the hold limit or the cap, before its time.
	Forced Flags = 1 << iota
	// Clamped: the event time was implausible, Time is the reorderer's choice.
	Clamped
	// Passed: a late record inside the main output (Options.Late = Pass). Only these
	// break the order of the main output.
	Passed
)

// An Item is what comes out of a Buffer.
type Item[P any] struct {
	Payload P
	// Time is the order time t. It differs from the event time for clamped records
	// and under OrderSource. MinTime means "before everything".
	Time int64
	// Stamp is the append stamp after the running maximum.
	Stamp    int64
	Position int64
	// Watermark is the W that a late or passed record missed, 0 for others.
	Watermark int64
	Partition Partition
	source    sourceID
	size      uint32
	Kind      Kind
	Flags     Flags
}

// Lateness returns how far below the watermark a late record was, in µs, and 0
// for others. A late record is late by at least one microsecond.
func (it *Item[P]) Lateness() int64 {
	if it.Kind == Late || it.Flags&Passed != 0 {
		return it.Watermark - it.Time
	}
	return 0
}
