package sim_test

import (
	"math/rand"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// depose has the leader of a group tell another member to stand, and keeps it from hearing that this one was elected: until
// some time later, or for an election timeout, it has no reason to doubt that it leads. Either it is cut off, or what it is
// told takes long, answers from before the election included.
func (w *world) depose(heir *machine, lasts time.Duration, rng *rand.Rand) {
	name := pick(rng, w.s.names()...)
	old, _ := w.leader(name)
	if old == nil || old == heir {
		return
	}
	if rng.Intn(2) == 0 {
		w.handTo(name, old, heir)
		mend := w.cutOff([]*machine{old})
		w.later(lasts, mend)
		return
	}
	late := time.Duration(rng.Int63n(int64(w.s.timeout * 3 / 4)))
	for _, x := range w.all {
		if x != old {
			w.later(late+lasts, w.net.slow(x.id, old.id, late))
		}
	}
	w.later(late, func() { w.handTo(name, old, heir) })
}

// handTo has a leader tell another member to stand, and returns when that one does or takes long.
func (w *world) handTo(name string, from, to *machine) {
	g, heir := from.group(name), to.group(name)
	if g == nil || heir == nil {
		return
	}
	id, address := raft.ServerID(to.serverID()), raft.ServerAddress(to.id)
	term := g.Term()
	w.clients.Go(func() { w.logf("%s hands the %s to %q: %v", from.id, name, id, g.HandTo(id, address)) })
	for step := w.s.weather.least / 4; heir.Term() == term && step < time.Second; step += step / 8 {
		w.sleep(step)
	}
}

// swap is the recipe that split NATS. A minority is cut off while records are acknowledged from the memory of the others. Then
// one of these loses its power and changes sides: with it the minority is a majority, which lacks those records.
func (w *world) swap(victim *machine, lasts time.Duration, rng *rand.Rand) {
	leader, _ := w.leader("journal")
	if w.s.mode == storage.Durable || leader == nil || leader == victim || !victim.isMember() || w.swapping {
		return
	}
	w.swapping = true
	var minority, rest []*machine
	for _, i := range rng.Perm(len(w.all)) {
		switch x := w.all[i]; {
		case x == victim || !x.isMember():
		case x != leader && len(minority) < (w.s.founders-1)/2:
			minority = append(minority, x)
		default:
			rest = append(rest, x)
		}
	}
	mend := w.cutOff(minority)
	quicken := victim.disk.drag(time.Second)
	w.later(time.Duration(rng.Int63n(int64(2*w.s.timeout))), func() {
		mend()
		quicken()
		mend = func() {}
		if victim.process() != nil && w.mayCut(victim) {
			w.logf("%s loses its power and changes sides", victim.id)
			victim.cut()
			victim.on()
			mend = w.cutOff(rest)
		}
		w.later(3*w.s.timeout+lasts, func() {
			mend()
			w.swapping = false
		})
	})
}

// cutOff cuts machines off all others, each other included, until the returned function is called.
func (w *world) cutOff(some []*machine) (mend func()) {
	var ends []func()
	for _, a := range some {
		for _, b := range w.all {
			if a != b {
				ends = append(ends, w.net.cut(a.id, b.id), w.net.cut(b.id, a.id))
			}
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// drag makes syncs take up to so much longer until the returned function is called.
func (d *disk) drag(by time.Duration) (quicken func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow += by
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.slow -= by
	}
}
