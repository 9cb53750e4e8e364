package sim_test

import (
	"math/rand"
	"time"
)

// usurp cuts the leader of a group off, while clients append to it, and has what the others write to their logs wait until some
// time after one of them leads. The first comes back soon after that: its log has a tail that no other has, and it may be told
// what is committed by a leader that began to ask it before its own first entry was written.
func (w *world) usurp(lasts time.Duration, rng *rand.Rand) {
	name := pick(rng, w.s.names()...)
	old, _ := w.leader(name)
	if old == nil || !w.usurping.CompareAndSwap(false, true) {
		return
	}
	var held, cut []func()
	for _, x := range w.all {
		if x != old {
			held = append(held, x.disk.stick())
			cut = append(cut, w.net.cut(old.id, x.id), w.net.cut(x.id, old.id))
		}
	}
	late := time.Duration(rng.Int63n(int64(pick(rng, 100*time.Millisecond, time.Second))))
	w.striking.Go(func() {
		defer w.usurping.Store(false)
		w.until(5*w.s.timeout, func() bool { return w.successor(name, old) != nil })
		w.sleep(min(lasts, 4*time.Second))
		for _, release := range held {
			release()
		}
		w.sleep(late)
		w.logf("%s, which led the %s, is back", old.id, name)
		for _, mend := range cut {
			mend()
		}
	})
}

// successor is who leads a group, but for one.
func (w *world) successor(name string, old *machine) *machine {
	for _, m := range w.all {
		if g := m.group(name); m != old && g != nil {
			if _, self := g.Leader(); self {
				return m
			}
		}
	}
	return nil
}
