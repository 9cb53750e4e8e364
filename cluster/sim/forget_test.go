package sim_test

import (
	"math/rand"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// forget takes from a machine what its disk had said to be safe. What is promised to be survived is that one copy forgets
// what all others have: so it is looked whether they do, once the machine can acknowledge nothing more. Terms and votes are not
// forgotten, which no group survives.
func (w *world) forget(k kind, m *machine, lasts time.Duration, rng *rand.Rand) {
	if m.process() == nil || w.forgetful(m) || w.damaged(m) || !w.mayCut(m) {
		return
	}
	if k == lie {
		m.disk.lie()
		w.later(lasts, func() {
			if w.mayCut(m) {
				m.cut()
				w.later(time.Duration(rng.Int63n(int64(time.Second))), m.on)
			}
			m.disk.comeClean()
		})
		return
	}
	dir := pick(rng, w.s.names()...)
	if dir == "commands" && m.commandsRot() {
		return
	}
	p := m.end()
	p.die(true)
	w.later(lasts, m.on)
	if dir == "journal" {
		dir = journalDir
	} else {
		dir = m.commands()
	}
	at, name := m.disk.cutFile(dir, w.othersHave(p))
	if at < 0 {
		return
	}
	w.logf("%s of %s is cut at journal position %d", path.Join(dir, name), m.id, at)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forgot = true; dir == journalDir {
		m.rotten = append(m.rotten, at)
	} else {
		m.rotLog = true
	}
}

// forgetful says whether another machine than m has forgotten something, or may be about to.
func (w *world) forgetful(m *machine) bool {
	return slices.ContainsFunc(w.all, func(x *machine) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x != m && (x.forgot || x.disk.isLying())
	})
}

func (m *machine) hasForgotten() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.forgot
}

// damaged says whether another machine than m has been damaged.
func (w *world) damaged(m *machine) bool {
	return slices.ContainsFunc(w.all, func(x *machine) bool { return x != m && (x.isRotten() || x.commandsRot()) })
}

// othersHave says whether all other members have on their disks what a process that is no more had in its logs. Of one that
// was still opening them nobody knows what that was.
func (w *world) othersHave(p *process) bool {
	if len(p.groups()) < len(w.s.names()) {
		return false
	}
	for _, x := range w.all {
		if x == p.m || !x.isMember() {
			continue
		}
		q := x.process()
		if q == nil {
			return false
		}
		for name, g := range p.groups() {
			if other := q.groups()[name]; other == nil || !has(other.Journal(), g.Journal()) {
				return false
			}
		}
	}
	return true
}

// has says whether a log has, on its disk, all that another has.
func has(j, other *storage.Journal) bool {
	index, term := other.LastEntry()
	last, of := j.LastEntry()
	if j.Err() != nil || j.DurableEnd() < j.End().Position || last < index {
		return false
	}
	if last > index {
		var l raft.Log
		if err := j.GetLog(index, &l); err != nil {
			return false
		}
		of = l.Term
	}
	return of == term
}

// lie makes syncs of segments do nothing until comeClean.
func (d *disk) lie() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lying = true
}

func (d *disk) isLying() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lying
}

// comeClean does what syncs have not done.
func (d *disk) comeClean() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lying = false
	for _, f := range d.owed {
		_ = f.Sync() // in memory, where it cannot fail
	}
	d.owed = nil
}

// cutFile cuts a segment of dir short, or removes it. The last one may be chosen, too, if open is set. It says where the
// journal is cut; -1 if there is nothing to cut.
func (d *disk) cutFile(dir string, open bool) (at int64, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.mem.ReadDir(dir)
	if err != nil {
		return -1, ""
	}
	names = slices.DeleteFunc(names, func(n string) bool { return path.Ext(n) != ".seg" })
	if !open && len(names) > 0 {
		names = names[:len(names)-1]
	}
	if len(names) == 0 {
		return -1, ""
	}
	name = names[d.rng.Intn(len(names))]
	base := baseOf(name)
	f, err := d.mem.OpenFile(path.Join(dir, name), os.O_RDWR, 0)
	if err != nil || base < 0 {
		return -1, ""
	}
	size, _ := f.Size()
	if size = d.rng.Int63n(size + 1); d.rng.Intn(3) == 0 {
		size, err = 0, d.mem.Remove(path.Join(dir, name))
		if err == nil {
			err = d.mem.SyncDir(dir)
		}
	} else if err = f.Truncate(size); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return -1, ""
	}
	return base + size, name
}

// isSegment says whether a file has a log's data.
func isSegment(name string) bool { return strings.HasSuffix(name, ".seg") }
