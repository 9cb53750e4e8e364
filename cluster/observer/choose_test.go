package observer

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/mirror"
)

func TestTheBestUpstreamIsChosen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  []candidate
		mark uint64
		want int
	}{
		"nobody":                                   {nil, 0, -1},
		"one that is behind":                       {[]candidate{{position: 1}}, 10, 0},
		"the first of equals":                      {[]candidate{{position: 10, given: true}, {position: 11, given: true}}, 10, 0},
		"who serves stays":                         {[]candidate{{position: 10, given: true}, {position: 10, given: true, current: true}}, 10, 1},
		"a follower before the leader":             {[]candidate{{position: 20, given: true, leads: true, current: true}, {position: 10, given: true}}, 10, 1},
		"given before another":                     {[]candidate{{position: 20, current: true}, {position: 10, given: true, leads: true}}, 10, 1},
		"not who lags, though given":               {[]candidate{{position: 9, given: true, current: true}, {position: 10}}, 10, 1},
		"not who lags, but the leader":             {[]candidate{{position: 9, given: true, current: true}, {position: 10, given: true, leads: true}}, 10, 1},
		"who lags if nobody else can":              {[]candidate{{position: 8, leads: true}, {position: 9}}, 10, 1},
		"what is newer than the mark is no reason": {[]candidate{{position: 10, current: true, given: true}, {position: 1000, given: true}}, 10, 0},
	} {
		if got := choose(c.all, c.mark); got != c.want {
			t.Errorf("%s: chose %d, want %d", name, got, c.want)
		}
	}
}

func TestLagIsTheTimeSinceTheCopyWasComplete(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	b := behind{since: start}
	told := func(s float64, has uint64, ends ...mirror.End) {
		var all seen
		for i := range ends {
			all.add(&ends[i], at(s))
		}
		b.look(&all, has, at(s))
	}
	want := func(s float64, lag time.Duration, once bool) {
		t.Helper()
		if got := b.lag(at(s)).Round(time.Millisecond); got != lag || b.once != once {
			t.Errorf("at %v the lag is %v, want %v; complete once: %v", s, got, lag, b.once)
		}
	}
	want(2, 2*time.Second, false)                                              // nobody has said anything
	told(3, 0, mirror.End{Position: 50, KnownPosition: 100, KnownRecords: 10}) // an observer that is not up to date either
	want(4, time.Second, false)                                                // since that was told
	b.reached(60, at(4))
	told(4, 60, mirror.End{Position: 100, KnownPosition: 200})
	want(4.5, 1500*time.Millisecond, false)
	b.reached(100, at(5))
	want(5, 2*time.Second, true) // which it took
	told(5.5, 200, mirror.End{Position: 200, KnownPosition: 200})
	want(6, 0, true)
	told(6.5, 200, mirror.End{KnownPosition: 250}, mirror.End{KnownPosition: 250, Lag: 9 * time.Second}) // the surer one counts
	b.reached(250, at(6.52))
	want(6.6, 20*time.Millisecond, true)
	want(9, 20*time.Millisecond, true)
	want(10, 3500*time.Millisecond, true)                               // nobody says any more that this is all
	told(11, 250, mirror.End{KnownPosition: 250, Lag: 4 * time.Second}) // it has not heard for long itself
	want(11, 4*time.Second, true)
}
