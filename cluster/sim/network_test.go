package sim_test

import (
	"math/rand"
	"sync"
	"sync/atomic"
	"time"
)

// network is what connects the machines. It decides the fate of every message, or of every piece of a byte stream.
type network struct {
	weather weather
	done    chan struct{} // closed when the simulation ends
	running sync.WaitGroup

	instances atomic.Uint64 // of members that it has given a wire

	mu     sync.Mutex // guards all below
	seed   int64
	links  map[[2]string]*link // from, to
	frozen map[string]chan struct{}
	hosts  map[string]*host
	off    map[string]bool // machines without power
	pairs  map[string][]*pair
}

// weather is how the network behaves on an ordinary day of a seed.
type weather struct {
	least, most time.Duration // that a message takes
	lost        float64       // probability
	twice       float64
	late        float64 // that a message takes up to a second
	disorder    bool    // of the appends of a pipeline
	refuses     bool    // who is cut off is known to be: nobody waits for an answer
}

// link is one direction between two machines.
type link struct {
	rng  *rand.Rand
	cut  int           // how many faults cut it now
	mend chan struct{} // closed when it is whole again; nil: it is
	slow time.Duration
	last time.Time // when the last message that keeps its place arrives
}

func newNetwork(seed int64, w weather) *network {
	return &network{weather: w, done: make(chan struct{}), seed: seed, links: map[[2]string]*link{}, frozen: map[string]chan struct{}{}, hosts: map[string]*host{}, off: map[string]bool{}, pairs: map[string][]*pair{}}
}

// close waits until no message is on its way.
func (n *network) close() {
	close(n.done)
	n.running.Wait()
}

// link returns the link from a machine to another. The caller holds mu.
func (n *network) link(from, to string) *link {
	key := [2]string{from, to}
	l := n.links[key]
	if l == nil {
		seed := n.seed
		for _, c := range from + ">" + to {
			seed = seed*131 + int64(c)
		}
		l = &link{rng: rand.New(rand.NewSource(seed))}
		n.links[key] = l
	}
	return l
}

// cut loses what is sent from a machine to another until the returned function is called.
func (n *network) cut(from, to string) (mend func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(from, to)
	if l.cut++; l.cut == 1 {
		l.mend = make(chan struct{})
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if l.cut--; l.cut == 0 {
			close(l.mend)
			l.mend = nil
		}
	}
}

// slow makes each message between two machines take longer.
func (n *network) slow(from, to string, d time.Duration) (mend func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(from, to)
	l.slow += d
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.slow -= d
	}
}

// freeze holds everything that a machine sends or receives back until the returned function is called.
func (n *network) freeze(id string) (thaw func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen[id] != nil {
		return func() {}
	}
	c := make(chan struct{})
	n.frozen[id] = c
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.frozen, id)
		close(c)
	}
}

// cold returns what to wait for before something passes between two machines; nil: nothing.
func (n *network) cold(from, to string) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.frozen[from]; c != nil {
		return c
	}
	return n.frozen[to]
}

// severed returns what is closed when the link is whole again; nil: it is.
func (n *network) severed(from, to string) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link(from, to).mend
}

// fates decides how often a message arrives, and after how long. In order, it is never before the one sent before.
func (n *network) fates(from, to string, twice, inOrder bool) []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, w := n.link(from, to), &n.weather
	if l.cut > 0 || l.rng.Float64() < w.lost {
		return nil
	}
	all := []time.Duration{n.delay(l)}
	if twice && l.rng.Float64() < w.twice {
		all = append(all, n.delay(l))
	}
	if inOrder {
		now := time.Now()
		at := now.Add(all[0])
		if !at.After(l.last) {
			at = l.last.Add(time.Nanosecond)
		}
		l.last = at
		all[0] = at.Sub(now)
	}
	return all
}

// delay is how long a message takes. The caller holds mu.
func (n *network) delay(l *link) time.Duration {
	w := &n.weather
	d := w.least + time.Duration(l.rng.Int63n(int64(w.most-w.least)+1)) + l.slow
	if l.rng.Float64() < w.late {
		d += time.Duration(l.rng.Int63n(int64(time.Second)))
	}
	return d
}

// pass waits until a message that takes d is through; false: it is lost after all, or quit was closed.
func (n *network) pass(from, to string, d time.Duration, quit <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-quit:
		return false
	case <-n.done:
		return false
	}
	for {
		c := n.cold(from, to)
		if c == nil {
			break
		}
		select {
		case <-c:
		case <-quit:
			return false
		case <-n.done:
			return false
		}
	}
	return n.severed(from, to) == nil
}
