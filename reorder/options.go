package reorder

import (
	"fmt"
	"math/bits"
	"time"
)

// A Disposal says what becomes of a record that cannot take its regular place.
type Disposal uint8

const (
	// DisposeDefault is Side for late records and Clamp for implausible times.
	DisposeDefault Disposal = iota
	// Side hands the record out apart from the main output.
	Side
	// Pass lets a late record into the main output, flagged.
	Pass
	// Drop counts a late record and forgets it.
	Drop
	// Clamp gives a record with an implausible time a place near its neighbours.
	Clamp
)

// An Order says what the order time of a record is.
type Order uint8

const (
	// OrderEvent orders by event time alone. For logs and telemetry.
	OrderEvent Order = iota
	// OrderSource keeps the order of each source and interleaves sources by time. For
	// changes of databases, whose stamps do not rise in commit order.
	OrderSource
)

// Options are the settings of a Buffer. The zero value is usable: it expects
// sources that are in order themselves.
type Options struct {
	// MaxOutOfOrder is B: how far a record may be behind the greatest event time of
	// its own source and still be on time.
	MaxOutOfOrder time.Duration
	// IdleAfter is I, in append time. 0 means max(2B, 10 s). It must not be below B.
	IdleAfter time.Duration
	// Hold is H, in append time. 0 means max(10B, 60 s). It must not be below B.
	Hold time.Duration
	// CapBytes bounds what is held, at 64 bytes a record and its size. 0 means 256 MiB.
	CapBytes int64
	// Late is Side (default), Pass or Drop.
	Late Disposal
	// FutureLimit and PastLimit bound plausible event times around the append stamp.
	// 0 means 5 minutes and 20 years.
	FutureLimit, PastLimit time.Duration
	// Implausible is Clamp (default) or Side.
	Implausible Disposal
	// Order is OrderEvent (default) or OrderSource.
	Order Order
}

const (
	defaultFuture   = 5 * time.Minute
	defaultPast     = 20 * 365 * 24 * time.Hour
	defaultCapBytes = 256 << 20
	// liveSlots is the number of slots B is cut into. At 1M records/s, 400 to 1400
	// slots cost about the same; a quarter as many or four times as many cost twice.
	liveSlots = 700
	// minSlotBits keeps a slot at 1 ms or more: below that the ring would cover so
	// little time that sources a second apart would all live in the heap.
	minSlotBits = 10
)

// An OptionError names the option that cannot be used.
type OptionError struct {
	Option string // the field's name in Options
	Reason string
}

func (e *OptionError) Error() string { return e.Option + " " + e.Reason }

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	if o.IdleAfter == 0 {
		o.IdleAfter = max(2*o.MaxOutOfOrder, 10*time.Second)
	}
	if o.Hold == 0 {
		o.Hold = max(10*o.MaxOutOfOrder, 60*time.Second)
	}
	if o.CapBytes == 0 {
		o.CapBytes = defaultCapBytes
	}
	if o.Late == DisposeDefault {
		o.Late = Side
	}
	if o.FutureLimit == 0 {
		o.FutureLimit = defaultFuture
	}
	if o.PastLimit == 0 {
		o.PastLimit = defaultPast
	}
	if o.Implausible == DisposeDefault {
		o.Implausible = Clamp
	}
	return o
}

func (o Options) validate() error {
	const maxBound = 10 * 365 * 24 * time.Hour // far from overflow in all sums below
	switch {
	case o.MaxOutOfOrder < 0 || o.MaxOutOfOrder > maxBound:
		return &OptionError{"MaxOutOfOrder", fmt.Sprintf("is %v: must be between 0 and 10 years", o.MaxOutOfOrder)}
	case o.IdleAfter < o.MaxOutOfOrder:
		return &OptionError{"IdleAfter", fmt.Sprintf("is %v: must not be below MaxOutOfOrder (%v), or a source would count as silent while its records may still be on time", o.IdleAfter, o.MaxOutOfOrder)}
	case o.IdleAfter <= 0:
		return &OptionError{"IdleAfter", fmt.Sprintf("is %v: must be above 0", o.IdleAfter)}
	case o.Hold < o.MaxOutOfOrder:
		return &OptionError{"Hold", fmt.Sprintf("is %v: must not be below MaxOutOfOrder (%v), or every record would be released by force", o.Hold, o.MaxOutOfOrder)}
	case o.Hold <= 0:
		return &OptionError{"Hold", fmt.Sprintf("is %v: must be above 0", o.Hold)}
	case o.CapBytes < 0:
		return &OptionError{"CapBytes", fmt.Sprintf("is %d: must not be negative", o.CapBytes)}
	case o.Late != Side && o.Late != Pass && o.Late != Drop:
		return &OptionError{"Late", "must be Side, Pass or Drop"}
	case o.FutureLimit < 0:
		return &OptionError{"FutureLimit", fmt.Sprintf("is %v: must not be negative", o.FutureLimit)}
	case o.PastLimit < 0:
		return &OptionError{"PastLimit", fmt.Sprintf("is %v: must not be negative", o.PastLimit)}
	case o.Implausible != Clamp && o.Implausible != Side:
		return &OptionError{"Implausible", "must be Clamp or Side"}
	case o.Order != OrderEvent && o.Order != OrderSource:
		return &OptionError{"Order", "must be OrderEvent or OrderSource"}
	}
	return nil
}

// Slot returns the width of a slot of the calendar, which is also the greatest
// delay that releasing by whole slots adds: the power of two at or below B/700,
// but at least 1.024 ms.
func (o Options) Slot() time.Duration {
	return time.Duration(1<<slotBits(micros(o.MaxOutOfOrder))) * time.Microsecond
}

func slotBits(bound int64) uint {
	n := bits.Len64(uint64(bound / liveSlots)) // one above the exponent, 0 for 0
	return uint(max(minSlotBits, n-1))
}

// micros rounds up, so that a bound never gets tighter than it was set.
func micros(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}
