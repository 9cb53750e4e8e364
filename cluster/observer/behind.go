package observer

import (
	"time"

	"github.com/daybook-data/daybook/cluster/mirror"
)

// seen is what the upstreams say of a journal, taken together.
type seen struct {
	have    uint64 // the most that one of them has
	known   uint64 // the most that one of them knows of
	records int64  // the same in records
	// asOf is when that was all that there is, as the surest of them says.
	asOf time.Time
	lag  time.Duration // by the upstream that knows the most
}

// add takes in what one says, who was asked at round.
func (s *seen) add(e *mirror.End, round time.Time) {
	s.have = max(s.have, e.Position)
	if e.KnownPosition > s.known || e.KnownPosition == s.known && (s.asOf.IsZero() || e.Lag < s.lag) {
		s.lag = e.Lag
	}
	s.known, s.records = max(s.known, e.KnownPosition), max(s.records, e.KnownRecords)
	if at := round.Add(-e.Lag); at.After(s.asOf) {
		s.asOf = at
	}
}

// behind measures how far a copy is behind. It is a plain value: the owner of it locks.
type behind struct {
	known   uint64 // up to where there is something, as told last
	records int64
	above   time.Duration // how far behind who told it is itself
	asOf    time.Time     // when that was all that there is
	target  uint64        // what the copy has to reach, which there was at since; 0: it has reached it
	since   time.Time
	delay   time.Duration // how long the last target took
	once    bool          // the first one was reached
}

// look takes over what the upstreams say.
func (b *behind) look(s *seen, has uint64, now time.Time) {
	if s.asOf.IsZero() || !s.asOf.After(b.asOf) {
		return
	}
	b.known, b.records, b.above, b.asOf = s.known, s.records, s.lag, s.asOf
	switch {
	case b.target > has: // still on the way
	case s.known > has:
		b.target, b.since = s.known, now
	default:
		b.target, b.delay, b.once = 0, 0, true
	}
}

// reached notes how far the copy is.
func (b *behind) reached(has uint64, now time.Time) {
	if b.target != 0 && has >= b.target {
		b.target, b.delay, b.once = 0, now.Sub(b.since), true
	}
}

// lag is for how long the copy has not had all that there is: as long as the last records took to come while they come
// within a round, and the time since it was last known to be complete otherwise.
func (b *behind) lag(now time.Time) time.Duration {
	lag := b.delay
	if b.target != 0 || !b.once {
		lag = now.Sub(b.since)
	}
	lag += b.above
	if old := now.Sub(b.asOf); !b.asOf.IsZero() && old > sureFor {
		lag = max(lag, old)
	}
	return lag
}
