package node

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"time"
)

const (
	// heapFloor is how much heap the garbage collector sees in use at the least, while there is work.
	heapFloor = 32 << 20
	// busyRate is how many bytes are allocated in a second where there is work, quietRate how many in each of quietAfter
	// where there is none. Between the two it stays as it was.
	busyRate, quietRate = 8 << 20, 4 << 20
	quietAfter          = 10 * time.Second
	// changingRate is how many goroutines more or fewer there are after a second in which there is no floor: see heap.
	changingRate = 64
	// quietPercent is GOGC where there is none, busyPercent, which is the runtime's default, where there is some.
	quietPercent, busyPercent = 20, 100
	// heapEvery is how often it is looked.
	heapEvery = time.Second
)

// heap is how the garbage collector is set. A server's live heap is small, some ten megabytes, as its data is off the heap:
// by itself the collector would run several times a second under load, for some milliseconds on both of two processors, and
// that was the p99 of small appends. So a floor is put in while there is work: the heap grows by up to heapFloor more
// between collections, and a large heap is collected as ever. Where there is none, what this had filled is given back, and
// is collected at a fifth of what is live again. GOGC, if set, holds instead.
//
// While hundreds of journals are opened, or closed, which shows in the number of goroutines, there is no floor: what stays would lie
// scattered among 32 MiB of what does not, and no page in between could be given back, ever. (300 journals: 12 MB live, in
// pages of 15.5 instead of 22.5.)
type heap struct {
	floor  strings.Builder // its memory is neither cleared nor touched, so none is taken from the system for it
	busy   bool            // the floor is in
	rested bool            // it was quiet when it was looked last
	looked time.Duration   // for how long it was looked whether it is quiet
	bytes  float64         // allocated in it
}

// keepHeap sets the collector until the returned function is called.
func keepHeap() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(quietPercent)
	h := &heap{}
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { h.run(end) })
	return func() {
		close(end)
		running.Wait()
		debug.SetGCPercent(busyPercent)
	}
}

func (h *heap) run(end <-chan struct{}) {
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	for before, at := readHeap(), time.Now(); ; {
		select {
		case <-end:
			return
		case <-tick.C:
		}
		now := readHeap()
		passed := time.Since(at)
		turn := h.look(now.since(before), passed)
		before, at = now, at.Add(passed)
		switch turn {
		case work:
			h.raise()
		case change:
			h.lower()
			runtime.GC() // else its goal stays until it would have run anyway
		case rest:
			h.lower()
			giveBack()
		}
	}
}

// turn is what has begun.
type turn int

const (
	nothing turn = iota
	work
	change
	rest
)

// look notes what was allocated in how long.
func (h *heap) look(of heapUse, passed time.Duration) turn {
	h.looked, h.bytes = h.looked+passed, h.bytes+of.allocated
	changes := math.Abs(of.goroutines) >= changingRate*passed.Seconds()
	if changes { // what it leaves behind is given back, though little was allocated
		h.rested, h.looked, h.bytes = false, 0, 0
	}
	switch {
	case h.busy && changes:
		h.busy = false
		return change
	case !h.busy && !changes && of.allocated >= busyRate*passed.Seconds():
		h.busy, h.rested, h.looked, h.bytes = true, false, 0, 0
		return work
	}
	if h.looked < quietAfter {
		return nothing
	}
	quiet := h.bytes < quietRate*h.looked.Seconds()
	begins := quiet && !h.rested
	h.rested, h.looked, h.bytes = quiet, 0, 0
	if begins {
		h.busy = false
		return rest
	}
	return nothing
}

// raise puts the floor in.
func (h *heap) raise() {
	h.floor.Grow(heapFloor)
	debug.SetGCPercent(busyPercent)
}

// lower takes it out.
func (h *heap) lower() {
	h.floor.Reset()
	debug.SetGCPercent(quietPercent)
}

// giveBack gives to the system what is not needed at rest.
func giveBack() {
	debug.FreeOSMemory()
	dropBinary()
}

// heapUse is how many bytes were ever allocated, and how many goroutines there are.
type heapUse struct{ allocated, goroutines float64 }

func readHeap() heapUse {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return heapUse{float64(sample[0].Value.Uint64()), float64(runtime.NumGoroutine())}
}

// since is what has come since then.
func (b heapUse) since(then heapUse) heapUse {
	return heapUse{b.allocated - then.allocated, b.goroutines - then.goroutines}
}
