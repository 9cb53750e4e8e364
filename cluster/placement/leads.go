package placement

import (
	"slices"
	"time"
)

const (
	// handOversAtOnce is how many leads are handed over in a round.
	handOversAtOnce = 4
	// longestWait is how long a journal waits at most until its lead is handed over again.
	longestWait = 10 * time.Minute
)

// Lead is a lead that another node should have.
type Lead[K comparable] struct {
	Journal K
	To      int32
}

// Leads decides when a node hands leads to the nodes that should have them: to one that has been up for a while, a few at
// a time, and the same one again only after a pause that doubles each time, so that a node that comes and goes, or that
// cannot lead, is not given them again and again. The zero value is not usable; it is not safe for concurrent use.
type Leads[K comparable] struct {
	settle   time.Duration
	up       map[int32]time.Time // since when
	journals map[K]handed
}

// handed is what is known of a lead that was handed over.
type handed struct {
	at   time.Time
	wait time.Duration // until it is again
}

// NewLeads returns one that waits until a node has been up for so long.
func NewLeads[K comparable](settle time.Duration) *Leads[K] {
	return &Leads[K]{settle: settle, up: map[int32]time.Time{}, journals: map[K]handed{}}
}

// Saw notes whether a node is up and would take leads.
func (l *Leads[K]) Saw(node int32, up bool, now time.Time) {
	if !up {
		delete(l.up, node)
	} else if _, known := l.up[node]; !known {
		l.up[node] = now
	}
}

// Due returns the leads of those given that are to be handed over now, and takes it that they are.
func (l *Leads[K]) Due(wanted []Lead[K], now time.Time) (due []Lead[K]) {
	for _, w := range wanted {
		since, up := l.up[w.To]
		h := l.journals[w.Journal]
		if len(due) == handOversAtOnce || !up || now.Sub(since) < l.settle || now.Sub(h.at) < h.wait {
			continue
		}
		wait := l.settle
		if now.Sub(h.at) < longestWait {
			wait = max(min(2*h.wait, longestWait), l.settle)
		}
		l.journals[w.Journal] = handed{at: now, wait: wait}
		due = append(due, w)
	}
	return due
}

// Prefer returns a journal's replicas with a node in front, which has to be one of them.
func Prefer(replicas []int32, first int32) []int32 {
	rest := slices.DeleteFunc(slices.Clone(replicas), func(id int32) bool { return id == first })
	return append([]int32{first}, rest...)
}
