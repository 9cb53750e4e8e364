package reorder

import (
	"errors"
	"fmt"
	"reflect"
)

// recordOverhead is what a held record counts toward CapBytes besides its size.
const recordOverhead = 64

// maxStamp keeps sums of stamps and bounds far from overflow (year 148,000).
const maxStamp = 1 << 62

// ErrEnded is returned for a record pushed after End.
var ErrEnded = errors.New("record pushed after the end of the input")

// ErrNotDrained is returned by Checkpoint while records that were let go have not
// been taken.
var ErrNotDrained = errors.New("taking a checkpoint before Settle and before Next returned everything")

// A PositionError reports a record whose position was already passed.
type PositionError struct {
	Partition string
	Position  int64 // of the record
	Next      int64 // the lowest position that would have been accepted
}

func (e *PositionError) Error() string {
	return fmt.Sprintf("record %d of partition %s was already read (next is %d): positions must rise", e.Position, e.Partition, e.Next)
}

// A StampError reports an append stamp that cannot be one.
type StampError struct {
	Partition       string
	Position, Stamp int64
}

func (e *StampError) Error() string {
	return fmt.Sprintf("record %d of partition %s has append stamp %d: it must be microseconds since 1970, not negative and below 2^62", e.Position, e.Partition, e.Stamp)
}

// A Buffer is the reorderer. See the package comment for its rules. It is not
// safe for concurrent use.
//
// Invariants. Everything below open was handed to the calendar for release and
// open <= w. Once settled (open == w) and drained, the records held are exactly
// those that were accepted and have order time >= w; so every decision that looks
// at what is held settles first, which makes it independent of when the caller
// settled.
type Buffer[P any] struct {
	opts  Options
	rules rules
	// The bounds of opts in µs.
	bound, idleAfter, holdFor int64

	table   table
	cal     calendar[P]
	clamped clampQueue[P]
	ages    ages

	clock  int64 // MinTime before the first record
	record int64 // the clock at the last record, whatever Advance did since
	w      int64 // the watermark
	open   int64 // records below may be handed out
	dry    int64 // records below have been handed out
	cut    int64 // the slot of w after the last Push
	atCut  bool  // see Boundary
	// Lower bounds of the next due times, and the smaller of them.
	idleDue, holdDue, due int64

	backlog []Item[P] // handed out before anything that is still in the calendar
	taken   bool      // the caller has the backlog
	drained bool      // settled, and Next returned everything
	forcing bool      // what is released now is released by force
	ended   bool
	bypass  bool
	scrub   bool // P holds pointers

	redo  redo
	bytes int64
	stats counters

	// Room that is reused so that nothing is allocated: the record in hand, one on
	// its way between two places, and the sources that turn idle.
	scratch, moved Item[P]
	silent         []sourceID
}

// New returns an empty buffer. The error is an *OptionError.
func New[P any](opts Options) (*Buffer[P], error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	b := &Buffer[P]{
		opts:      opts,
		rules:     newRules(opts),
		bound:     micros(opts.MaxOutOfOrder),
		idleAfter: micros(opts.IdleAfter),
		holdFor:   micros(opts.Hold),
		clock:     MinTime,
		record:    MinTime,
		w:         MinTime,
		open:      MinTime,
		dry:       MinTime,
		cut:       MinTime >> slotBits(micros(opts.MaxOutOfOrder)),
		idleDue:   MaxTime,
		holdDue:   MaxTime,
		due:       MaxTime,
		drained:   true,
		scrub:     hasPointers(reflect.TypeFor[P]()),
	}
	b.stats.lastIn, b.stats.lastOut = MinTime, MinTime
	b.table.init()
	b.cal.init(slotBits(b.bound), b.scrub)
	return b, nil
}

// Options returns the options with the defaults filled in.
func (b *Buffer[P]) Options() Options { return b.opts }

// Push takes one record. The records must come in canonical order (J, partition,
// position); after Restore, from PartitionState.Seek on. Push keeps r.Payload
// until the record has left through Next, and a little longer: until its chunk or
// its sorted slot has left.
//
// An error leaves the buffer as it was: *PositionError, *StampError, ErrEnded.
func (b *Buffer[P]) Push(r Record[P]) error {
	part := &b.table.parts[r.Partition]
	if err := b.check(part, &r); err != nil {
		return err
	}
	b.touch()
	stamp := max(r.Stamp, part.stamp)
	again := r.Position < part.restored
	if !again {
		stamp = max(stamp, b.clock)
	}
	part.held.note(r.Position, part.stamp, stamp)
	part.stamp, part.next = stamp, r.Position+1
	if again {
		b.atCut = false
		b.takeBack(part, &r, stamp)
		return nil
	}
	if stamp > b.clock {
		b.tick(stamp)
	}
	b.record = stamp
	b.stats.pushed++
	if b.bypass {
		b.atCut = true
		b.emit(b.item(&r, part.own, stamp, r.Time))
		return nil
	}
	b.judge(&r, stamp)
	if b.bytes > b.opts.CapBytes {
		b.enforceCap()
	}
	slot := b.w >> b.cal.bits
	b.atCut, b.cut = slot != b.cut, slot
	return nil
}

// Boundary reports whether the last Push moved the watermark into another slot.
// Which records are such boundaries, and what has left once Settle was called and
// Next drained there, depends on the input alone: not on Advance, earlier calls of
// Settle, or restarts. A sink whose output must be cut at reproducible places cuts
// it at boundaries.
func (b *Buffer[P]) Boundary() bool { return b.atCut }

func (b *Buffer[P]) check(part *partition, r *Record[P]) error {
	switch {
	case b.ended:
		return ErrEnded
	case part.revoked:
		return fmt.Errorf("record %d pushed into partition %s after it was revoked", r.Position, part.name)
	case r.Position < part.next:
		return &PositionError{part.name, r.Position, part.next}
	case r.Stamp < 0 || r.Stamp >= maxStamp:
		return &StampError{part.name, r.Position, r.Stamp}
	}
	return nil
}

// Advance tells that every later record has an append stamp of at least stamp, so
// that silence can turn sources idle and release what waits. It does nothing
// before the first record: a replay could not tell when that was. MaxTime, the
// Frontier of a Merge that is at its end, is ignored: call End.
func (b *Buffer[P]) Advance(stamp int64) {
	if b.clock == MinTime || stamp <= b.clock || stamp >= maxStamp || b.ended {
		return
	}
	b.touch()
	b.tick(stamp)
}

// tick moves the clock and runs the timers that became due.
func (b *Buffer[P]) tick(stamp int64) {
	if stamp <= b.clock {
		return
	}
	if b.clock == MinTime {
		b.start(stamp)
	}
	b.clock = stamp
	if stamp >= b.due {
		b.runTimers()
	}
}

// Settle lets go of everything below the watermark, down to the microsecond,
// rather than by whole slots. Call it when the input has nothing ready and before
// Checkpoint. It changes when records leave, never which or in what order.
func (b *Buffer[P]) Settle() {
	b.touch()
	b.open = b.w
}

// End tells that the input is over: everything is let go in order. Further
// records are refused.
func (b *Buffer[P]) End() {
	b.touch()
	b.flush()
	b.ended = true
}

// Bypass switches the ordering off: everything held is let go in order, and every
// later record comes out at once, in the order it was pushed.
func (b *Buffer[P]) Bypass() {
	b.touch()
	b.flush()
	b.bypass = true
}

func (b *Buffer[P]) flush() {
	b.w, b.open = MaxTime, MaxTime
	b.ages.clear()
	b.idleDue, b.holdDue, b.due = MaxTime, MaxTime, MaxTime
}

// FlushIdle applies the rule for "all sources are idle" at once: the watermark
// becomes the greatest M + 1, everything is let go, and the watermark stays there,
// so that what comes later is judged against it. It is for a run that ends at the
// present end of an unbounded input and is continued later.
func (b *Buffer[P]) FlushIdle() {
	if b.ended || b.bypass {
		return
	}
	b.touch()
	b.allIdle()
}

// Watermark returns W: MinTime at first, MaxTime after End.
func (b *Buffer[P]) Watermark() int64 { return b.w }

// touch starts a call that changes what Next will return.
func (b *Buffer[P]) touch() {
	b.drained = false
	if b.taken {
		b.resetBacklog()
	}
}

// hasPointers reports whether the collector must look into values of type t.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	}
	return true
}
