//go:build linux

package jepsen

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/daybook-data/daybook/internal/jepsen/lab"
)

// lots draws faults for a cluster.
type lots struct {
	*rand.Rand
	nodes, observers int
	durable          bool
}

// draw returns n faults.
func (l lots) draw(n int) []Fault {
	var faults []Fault
	for range n {
		f := l.one()
		f.For = time.Duration(1500+l.IntN(6500)) * time.Millisecond
		f.Rest = time.Duration(500+l.IntN(3500)) * time.Millisecond
		faults = append(faults, f)
	}
	return faults
}

func (l lots) one() Fault {
	if l.observers > 0 && l.IntN(8) == 0 {
		return l.ofObserver(l.nodes + 1 + l.IntN(l.observers))
	}
	some := l.Perm(l.nodes) // the nodes in some order
	for i := range some {
		some[i]++
	}
	var faults []func() Fault
	for _, kind := range [][]func() Fault{l.ofNetwork(some), l.ofProcesses(some), l.ofDisks(some), l.ofClocks(some)} {
		faults = append(faults, kind...)
	}
	return faults[l.IntN(len(faults))]()
}

// few is a minority of nodes, most a majority. Of one node both are that.
func few(some []int) []int  { return some[:max(1, (len(some)-1)/2)] }
func most(some []int) []int { return some[:len(some)/2+1] }

func (l lots) ofNetwork(some []int) []func() Fault {
	one := some[0]
	faults := []func() Fault{
		func() Fault { return Worsen(l.quality()) },
		func() Fault { return Isolate(one) },
		func() Fault { return Forsake(one) },
	}
	if l.nodes > 1 {
		faults = append(faults,
			func() Fault { return Split(one) },
			func() Fault { return Split(few(some)...) },
			func() Fault { return Mute(one) },
			func() Fault { return Deafen(one) },
		)
	}
	if l.nodes > 2 {
		faults = append(faults, func() Fault { return Bridge(some[l.nodes-1], few(some)...) })
	}
	if l.nodes > 3 {
		faults = append(faults, func() Fault { return Ring(l.nodes) })
	}
	return faults
}

func (l lots) quality() lab.Quality {
	return lab.Quality{
		Loss: 0.15 * l.Float64(), Double: 0.1 * l.Float64(), Reorder: 0.2 * l.Float64(),
		Delay: time.Duration(l.IntN(40)) * time.Millisecond, Jitter: time.Duration(l.IntN(40)) * time.Millisecond,
	}
}

// ofProcesses cuts the power of one node at a time, unless all survive it.
func (l lots) ofProcesses(some []int) []func() Fault {
	one, powerless := some[0], some[:1]
	if l.durable {
		powerless = most(some)
	}
	return []func() Fault{
		func() Fault { return Pause(one) },
		func() Fault { return Pause(few(some)...) },
		func() Fault { return Pause(most(some)...) },
		func() Fault { return Kill(one) },
		func() Fault { return Kill(few(some)...) },
		func() Fault { return Kill(most(some)...) },
		func() Fault { return Kill(some...) },
		func() Fault { return CutPower(one) },
		func() Fault { return CutPower(powerless...) },
	}
}

func (l lots) ofDisks(some []int) []func() Fault {
	one := some[0]
	return []func() Fault{
		func() Fault { return Fill(one, int64(l.IntN(64<<10))) },
		func() Fault { return Stall(one) },
		func() Fault { return Slow(one) },
		func() Fault { return Die(one) },
	}
}

func (l lots) ofClocks(some []int) []func() Fault {
	if !lab.HasClocks {
		return nil
	}
	one := some[0]
	return []func() Fault{
		func() Fault { return Jump(l.shift(12*time.Hour), one) },
		func() Fault { return Jump(l.shift(12*time.Hour), most(some)...) },
		func() Fault { return Misset(l.shift(30*time.Minute), one) },
		func() Fault { return Strobe(l.shift(12*time.Hour), one) },
	}
}

// shift is one of a clock, up to most or down to as much: as often of seconds as of hours.
func (l lots) shift(most time.Duration) time.Duration {
	const least = 100 * time.Millisecond
	d := time.Duration(float64(least) * math.Pow(float64(most/least), l.Float64()))
	if l.IntN(2) == 0 {
		return -d
	}
	return d
}

// ofObserver is a fault of an observer's machine.
func (l lots) ofObserver(o int) Fault {
	faults := []func() Fault{
		func() Fault { return Isolate(o) },
		func() Fault { return Forsake(o) },
		func() Fault { return Deafen(o) },
		func() Fault { return Pause(o) },
		func() Fault { return Kill(o) },
		func() Fault { return CutPower(o) },
		func() Fault { return Stall(o) },
		func() Fault { return Slow(o) },
	}
	if lab.HasClocks {
		faults = append(faults, func() Fault { return Jump(l.shift(12*time.Hour), o) })
	}
	return faults[l.IntN(len(faults))]()
}
