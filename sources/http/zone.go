package http

import (
	"time"
	_ "time/tzdata" // a static binary on a bare machine has no zone files
)

func loadZone(name string) (*time.Location, error) { return time.LoadLocation(name) }

// local is what a wall clock shows, told from any instant.
type local struct {
	year       int
	month      time.Month
	day        int
	hour, min  int
	sec, nanos int
}

// shift says how a wall-clock time was made an instant where it names none or two.
type shift int

const (
	exact   shift = iota
	gap           // the clock skipped it: the later offset is then in force
	overlap       // the clock showed it twice: the earlier offset was taken
)

// instant returns the instant at which a clock in the zone shows l. Unlike
// time.Date it says which of two it takes: in an overlap the first; in a gap the
// time is moved on by the gap's length.
func (l local) instant(zone *time.Location) (time.Time, shift) {
	asUTC := time.Date(l.year, l.month, l.day, l.hour, l.min, l.sec, l.nanos, time.UTC)
	// No offset is above 26 hours; the two days around it see any transition.
	before := offsetAt(asUTC.Add(-26*time.Hour), zone)
	after := offsetAt(asUTC.Add(26*time.Hour), zone)
	first := asUTC.Add(-before)
	second := asUTC.Add(-after)
	firstHolds := offsetAt(first, zone) == before
	secondHolds := offsetAt(second, zone) == after
	switch {
	case before == after:
		return first, exact
	case firstHolds && secondHolds:
		return first, overlap
	case firstHolds:
		return first, exact
	case secondHolds:
		return second, exact
	}
	return first, gap
}

func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
