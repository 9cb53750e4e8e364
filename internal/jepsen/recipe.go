//go:build linux

package jepsen

import (
	"errors"
	"fmt"
	"time"
)

// Usurp is the recipe that made two histories of one on five nodes of another journal (nats-server's issue 7567): two
// nodes are paused; a third loses its power, and what it has not synced; then these two go on and the other two are
// paused. So what was acknowledged by three is known, on the side that now has the majority, at most by the one that
// has lost it. first says which node is paused first; the others follow in their order.
func Usurp(first int) []Fault {
	const nodes = 5
	n := func(i int) int { return (first-1+i)%nodes + 1 }
	behind, ahead, victim := []int{n(0), n(1)}, []int{n(3), n(4)}, n(2)
	rest := func(*Cluster) error { return nil }
	swap := func(c *Cluster) error { return errors.Join(Pause(ahead...).Begin(c), Pause(behind...).End(c)) }
	return []Fault{
		{Name: fmt.Sprintf("pause %v", behind), For: 3 * time.Second, Begin: Pause(behind...).Begin, End: rest},
		// The other three go on meanwhile: what they acknowledge now is on these alone.
		{Name: fmt.Sprintf("cut the power of %d, pause %v and let %v go on", victim, ahead, behind), For: time.Second, End: rest,
			Begin: func(c *Cluster) error { return errors.Join(c.cutPower(victim), swap(c), c.start(victim)) }},
		{Name: fmt.Sprintf("let %v and %d have the majority", behind, victim), For: 6 * time.Second, Begin: rest, End: rest},
		{Name: fmt.Sprintf("let %v go on", ahead), Rest: 4 * time.Second, Begin: Pause(ahead...).End, End: rest},
	}
}
