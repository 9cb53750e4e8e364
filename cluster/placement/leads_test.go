package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/cluster/placement"
)

func TestALeadIsHandedToWhoHasBeenUpForAWhile(t *testing.T) {
	at := time.Unix(1e9, 0)
	l := placement.NewLeads[string](10 * time.Second)
	want := []placement.Lead[string]{{Journal: "a", To: 2}}
	check := func(what string, after time.Duration, expect []placement.Lead[string]) {
		t.Helper()
		if diff := cmp.Diff(expect, l.Due(want, at.Add(after))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("nobody has seen it", 0, nil)
	l.Saw(2, true, at)
	l.Saw(2, true, at.Add(5*time.Second))
	check("it has just come up", 9*time.Second, nil)
	check("it has been up", 10*time.Second, want)
	check("it was handed over just now", 19*time.Second, nil)
	l.Saw(2, false, at.Add(20*time.Second))
	check("it is down", 30*time.Second, nil)
	l.Saw(2, true, at.Add(31*time.Second))
	check("it has just come up again", 40*time.Second, nil)
	check("a second time", 41*time.Second, want)
	check("the pause is twice as long", 60*time.Second, nil)
	check("a third time", 61*time.Second, want)
	check("and again", 100*time.Second, nil)
	check("a fourth time", 101*time.Second, want)
}

// However often it fails, it is tried at last every ten minutes, and one that held long enough counts as new.
func TestThePauseEndsSomewhere(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := placement.NewLeads[string](time.Second)
	l.Saw(1, true, now)
	want := []placement.Lead[string]{{Journal: "a", To: 1}}
	last, longest := now, time.Duration(0)
	for range 4 * 3600 {
		now = now.Add(time.Second)
		if len(l.Due(want, now)) > 0 {
			longest, last = max(longest, now.Sub(last)), now
		}
	}
	if longest != 10*time.Minute {
		t.Errorf("the longest pause was %v", longest)
	}
	now = now.Add(time.Hour)
	first := now
	for len(l.Due(want, now)) == 0 {
		now = now.Add(time.Second)
	}
	for now = now.Add(time.Second); len(l.Due(want, now)) == 0; now = now.Add(time.Second) {
	}
	if now.Sub(first) > 5*time.Second {
		t.Errorf("after an hour of peace the pause is %v", now.Sub(first))
	}
}

func TestFewLeadsAreHandedOverAtATime(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := placement.NewLeads[int](0)
	l.Saw(1, true, now)
	var want []placement.Lead[int]
	for i := range 10 {
		want = append(want, placement.Lead[int]{Journal: i, To: 1})
	}
	for _, n := range []int{4, 4, 2} {
		now = now.Add(time.Second)
		due := l.Due(want, now)
		if len(due) != n {
			t.Fatalf("%d are handed over, want %d", len(due), n)
		}
		want = want[n:]
	}
}

func TestPreferKeepsTheOthersInOrder(t *testing.T) {
	if diff := cmp.Diff([]int32{3, 1, 2}, placement.Prefer([]int32{1, 3, 2}, 3)); diff != "" {
		t.Error(diff)
	}
}
