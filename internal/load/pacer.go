package load

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const leastSleep = 200 * time.Microsecond

// Pace calls due for each of n turns at its time, gap apart, until the context or the time is over; n < 0 is without
// end. due gets the turn and the time it was meant for, which is what latency counts from: where the machine or due
// itself is late, later turns come at once and are charged for it.
//
// It sleeps in a thread of its own: the runtime's timers are only good to a millisecond. Turns that are closer together
// than leastSleep come together, late by at most that, which they are charged for too: waking for each would take the
// processor from what is measured.
func Pace(ctx context.Context, n int64, gap time.Duration, end time.Time, due func(turn int64, at time.Time) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	for turn := int64(0); (turn < n || n < 0) && ctx.Err() == nil; turn++ {
		at := start.Add(time.Duration(turn) * gap)
		if !end.IsZero() && at.After(end) {
			return nil
		}
		if wait := time.Until(at); wait > 0 {
			t := unix.NsecToTimespec(int64(max(wait, leastSleep)))
			_ = unix.Nanosleep(&t, nil) // woken early is sooner than due by less than a signal's time
		}
		if err := due(turn, at); err != nil {
			return err
		}
	}
	return ctx.Err()
}
