package sim_test

import (
	"math/rand"
	"slices"
	"sort"
	"syscall"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// kind is a kind of fault.
type kind string

// The faults there are.
const (
	killOne       kind = "kill"     // kill -9 of a process
	killMany      kind = "kill-all" // of all of them
	cutPower      kind = "power"    // of one machine: what is not synced is lost in part
	cutPowerAll   kind = "power-all"
	stopOne       kind = "stop"     // in order
	isolate       kind = "isolate"  // a machine from all others
	oneWay        kind = "one-way"  // what a machine sends, or what it is sent
	cutLink       kind = "link"     // between two machines
	split         kind = "split"    // two halves, or a bridge between them
	slowLink      kind = "slow"     // between two machines
	resetConns    kind = "reset"    // of a machine's connections
	freeze        kind = "freeze"   // a machine's network and disk stand still
	hangDisk      kind = "hang"     // writes and syncs do not return
	failSync      kind = "fail"     // a sync, or a write, returns an error
	fillDisk      kind = "full"     // there is no space
	rot           kind = "rot"      // a bit flips in a sealed segment
	transferLead  kind = "transfer" // the leader hands over
	takeSnapshot  kind = "snapshot" // of the state machine
	changeMembers kind = "members"  // are added and removed
	rotCommands   kind = "rot-log"  // a bit flips in a sealed segment of the command log
	usurp         kind = "usurp"    // the leader is cut off, and the first entry of the next one takes its time
	lie           kind = "lie"      // syncs of a log's data do nothing, until the power is cut
	cutFile       kind = "cut-file" // a segment is cut short, or is gone
	depose        kind = "depose"   // the leader is cut off as it hands over
	swap          kind = "swap"     // a minority is cut off, and then those who went on, but for one, which has lost its memory
	burst         kind = "burst"    // several of the others at once
)

var allKinds = []kind{
	killOne, killMany, cutPower, cutPowerAll, stopOne, isolate, oneWay, cutLink, split, slowLink, resetConns, freeze, hangDisk,
	failSync, fillDisk, rot, transferLead, takeSnapshot, changeMembers, rotCommands, usurp, lie, cutFile, depose, swap, burst,
}

// fault is something that ends at a time.
type fault struct {
	at time.Time
	do func()
}

// later has something done at a time.
func (w *world) later(d time.Duration, do func()) {
	w.plan = append(w.plan, fault{time.Now().Add(d), do})
	sort.SliceStable(w.plan, func(i, k int) bool { return w.plan[i].at.Before(w.plan[k].at) })
}

// pass lets time go by until end and does what is due.
func (w *world) pass(end time.Time) {
	for len(w.plan) > 0 && !w.plan[0].at.After(end) {
		f := w.plan[0]
		w.plan = w.plan[1:]
		w.sleep(time.Until(f.at))
		f.do()
	}
	w.sleep(time.Until(end))
}

// suffer is the time of faults.
func (w *world) suffer(rng *rand.Rand) {
	end := time.Now().Add(w.s.length)
	w.pass(time.Now().Add(time.Duration(rng.Int63n(int64(5 * time.Second)))))
	for len(w.s.kinds) > 0 && time.Now().Before(end) {
		w.strike(pick(rng, w.s.kinds...), rng)
		w.pass(time.Now().Add(time.Duration(rng.ExpFloat64() * float64(w.s.often))))
	}
	if len(w.s.kinds) == 0 {
		w.pass(end)
	}
}

// strike makes a fault happen, and plans its end.
func (w *world) strike(k kind, rng *rand.Rand) {
	m := pick(rng, w.all...)
	lasts := time.Duration(rng.ExpFloat64() * float64(pick(rng, 200*time.Millisecond, 2*time.Second, 6*time.Second)))
	w.logf("fault %s at %s for %v", k, m.id, lasts)
	switch k {
	case killOne, stopOne:
		if m.process() == nil {
			return
		}
		if k == stopOne {
			m.stop()
		} else {
			m.kill()
		}
		w.later(lasts, m.on)
	case killMany:
		for _, m := range w.all {
			if m.process() != nil {
				m.kill()
				w.later(time.Duration(rng.Int63n(int64(3*time.Second))), m.on)
			}
		}
	case cutPower:
		if w.mayCut(m) {
			m.cut()
			w.later(lasts, m.on)
		}
	case cutPowerAll:
		if w.s.mode != storage.Durable && w.s.journal {
			return // more than the mode promises to survive
		}
		for _, m := range w.all {
			if m.process() != nil {
				m.cut()
				w.later(time.Duration(rng.Int63n(int64(3*time.Second))), m.on)
			}
		}
	case isolate, oneWay, cutLink, split, slowLink, resetConns:
		w.strikeNetwork(k, m, lasts, rng)
	case freeze:
		thaw, release := w.net.freeze(m.id), m.disk.hang()
		w.later(lasts, func() { release(); thaw() })
	case hangDisk:
		w.later(lasts, m.disk.hang())
	case failSync, fillDisk, rot, rotCommands:
		w.strikeDisk(k, m, lasts, rng)
	case usurp:
		w.usurp(lasts, rng)
	case depose:
		w.depose(m, lasts, rng)
	case swap:
		w.swap(m, lasts, rng)
	case lie, cutFile:
		w.forget(k, m, lasts, rng)
	case burst:
		for range 2 + rng.Intn(3) {
			if k := pick(rng, w.s.kinds...); k != burst {
				w.strike(k, rng)
			}
		}
	case transferLead, takeSnapshot, changeMembers:
		w.strikeGroup(k, m, rng)
	}
}

func (w *world) strikeNetwork(k kind, m *machine, lasts time.Duration, rng *rand.Rand) {
	other := pick(rng, w.all...)
	half := map[string]bool{}
	bridge := pick(rng, "", m.id)
	for _, x := range w.all {
		half[x.id] = rng.Intn(2) == 0
	}
	in, out := rng.Intn(2) == 0, false
	out = !in
	if k == isolate || k == cutLink {
		in, out = true, true
	}
	var ends []func()
	each := func(hit func(a, b string) bool) {
		for _, a := range w.all {
			for _, b := range w.all {
				if a != b && hit(a.id, b.id) {
					ends = append(ends, w.net.cut(a.id, b.id))
				}
			}
		}
	}
	switch k {
	case isolate, oneWay:
		each(func(a, b string) bool { return out && a == m.id || in && b == m.id })
	case cutLink:
		each(func(a, b string) bool { return a == m.id && b == other.id || b == m.id && a == other.id })
	case split:
		each(func(a, b string) bool { return half[a] != half[b] && a != bridge && b != bridge })
	case slowLink:
		ends = append(ends, w.net.slow(m.id, other.id, time.Duration(rng.Int63n(int64(800*time.Millisecond)))))
	case resetConns:
		w.net.resetAll(m.id)
	}
	w.later(lasts, func() {
		w.logf("end of %s at %s", k, m.id)
		for _, mend := range ends {
			mend()
		}
	})
}

func (w *world) strikeDisk(k kind, m *machine, lasts time.Duration, rng *rand.Rand) {
	p := m.process()
	if p == nil {
		return
	}
	switch k {
	case failSync:
		op := pick(rng, vfs.OpSync, vfs.OpSync, vfs.OpWrite, vfs.OpAllocate, vfs.OpSyncDir, vfs.OpRename)
		p.mount.Inject(vfs.Fault{Op: op, Nth: 1 + rng.Intn(4), Err: syscall.EIO})
	case fillDisk:
		p.mount.Limit(rng.Int63n(20 << 10))
		w.later(lasts, func() { p.mount.Limit(-1) })
	case rot:
		if w.forgetful(m) {
			return
		}
		may := func(at int64) bool { // noted before it happens: it may be found at once
			ok := w.elsewhere(m, at)
			m.mu.Lock()
			defer m.mu.Unlock()
			if ok {
				m.rotten = append(m.rotten, at)
			}
			return ok
		}
		if at := m.disk.rot(journalDir, may); at >= 0 {
			w.logf("a bit at journal position %d of %s flips", at, m.id)
		}
	case rotCommands:
		if w.forgetful(m) || slices.ContainsFunc(w.all, func(x *machine) bool { return x != m && x.commandsRot() }) {
			return // what one has lost the others must have
		}
		may := func(int64) bool { // as above
			m.mu.Lock()
			defer m.mu.Unlock()
			m.rotLog = true
			return true
		}
		if at := m.disk.rot(m.commands(), may); at >= 0 {
			w.logf("a bit at position %d of the command log of %s flips", at, m.id)
		}
	}
}

// commandsRot says whether the machine's command log was damaged since its disk was new.
func (m *machine) commandsRot() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rotLog
}

// apart is how far from each other the damaged places of two machines have to be: one of them has to have what the other
// one loses, in whole segments.
const apart = 160 << 10

// elsewhere says whether the other machines have what is at a journal position of m.
func (w *world) elsewhere(m *machine, at int64) bool {
	for _, x := range w.all {
		x.mu.Lock()
		near := x != m && slices.ContainsFunc(x.rotten, func(other int64) bool { return max(at-other, other-at) < apart })
		x.mu.Unlock()
		if near {
			return false
		}
	}
	return true
}

func (m *machine) isRotten() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rotten) > 0
}

// mayCut says whether a power cut of a machine is one that is promised to be survived. In the mode replicated it is if a
// minority at a time are without what they had acknowledged: it may be nowhere but in the memory of a majority.
func (w *world) mayCut(m *machine) bool {
	if w.s.mode == storage.Durable || !w.s.journal {
		return true
	}
	lack := 0
	for _, x := range w.all {
		if x != m && x.lacks() {
			lack++
		}
	}
	return lack < (w.s.founders-1)/2
}
