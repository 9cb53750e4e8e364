package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// facts are what clients were told. Nothing that comes later may contradict them.
type facts struct {
	mu      sync.Mutex // guards all below
	acked   [partitions]map[string]int64
	end     [partitions]int64 // behind what was acknowledged
	refused map[string]bool   // appends and commands that were answered as not done
	shown   [partitions]map[int64]string
	leaders map[string]map[uint64]string // by group, by term
	applied []string                     // commands that were acknowledged
	order   map[int][]told               // of each producer: what it waited for before it sent the next
	counts  map[string]int               // acknowledgements by client
}

// told is an acknowledgement.
type told struct {
	partition uint32
	value     string
	offset    int64
}

func (f *facts) init() {
	for p := range f.acked {
		f.acked[p], f.shown[p] = map[string]int64{}, map[int64]string{}
	}
	f.refused, f.leaders = map[string]bool{}, map[string]map[uint64]string{"journal": {}, "commands": {}}
	f.order, f.counts = map[int][]told{}, map[string]int{}
}

// ack notes that a value was acknowledged. Doing so again must give the same offset.
func (f *facts) ack(producer int, p uint32, value string, offset int64) (broken string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.acked[p][value]; ok {
		if old != offset {
			return fmt.Sprintf("%s was acknowledged at offset %d of partition %d, and before at %d", value, offset, p, old)
		}
		return ""
	}
	f.acked[p][value] = offset
	f.end[p] = max(f.end[p], offset+1)
	f.counts[fmt.Sprint("producer ", producer)]++
	if seen, ok := f.shown[p][offset]; ok && seen != value {
		return fmt.Sprintf("%s was acknowledged at offset %d of partition %d, where %s was read", value, offset, p, seen)
	}
	return ""
}

// inTime notes an acknowledgement that the producer waited for before it sent anything else.
func (f *facts) inTime(producer int, t told) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.order[producer] = append(f.order[producer], t)
}

// show notes that a reader saw a value.
func (f *facts) show(id string, p uint32, offset int64, value string) (broken string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.shown[p][offset]; ok && old != value {
		return fmt.Sprintf("%s shows %s at offset %d of partition %d, where %s was read before", id, value, offset, p, old)
	}
	f.shown[p][offset] = value
	return ""
}

// refuse notes that something was answered as not done.
func (f *facts) refuse(value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused[value] = true
}

// lead notes that a member led, or acknowledged, in a term.
func (f *facts) lead(group, id string, term uint64) (broken string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.leaders[group][term]; ok && old != id {
		return fmt.Sprintf("%s and %s both lead the %s in term %d", old, id, group, term)
	}
	f.leaders[group][term] = id
	return ""
}

// done notes that a command was acknowledged.
func (f *facts) done(client, command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = append(f.applied, command)
	f.counts[client]++
}

func (f *facts) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.applied)
}

func (f *facts) progress() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// say reports what is broken, if anything is.
func (w *world) say(broken string) {
	if broken != "" {
		w.violated("%s", broken)
	}
}
