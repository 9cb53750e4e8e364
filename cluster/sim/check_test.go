package sim_test

import (
	"bytes"
	"fmt"

	"github.com/daybook-data/daybook/storage"
)

// check compares what the members have with what was promised to clients. All of them have the same number of entries.
func (w *world) check() {
	if w.s.journal {
		w.checkFrames("journal")
		for _, m := range w.all {
			if m.isMember() {
				w.checkRecords(m)
			}
		}
	}
	if w.s.commands {
		w.checkFramesOfCommands()
	}
}

// checkFrames compares the members' logs byte by byte.
func (w *world) checkFrames(name string) {
	lead, leader := w.leader(name)
	if leader == nil {
		w.violated("nobody leads the %s any more", name)
		return
	}
	from, _ := leader.Journal().FirstIndex()
	to, _ := leader.Journal().LastIndex()
	for _, m := range w.all {
		g := m.group(name)
		if m == lead || !m.isMember() || g == nil {
			continue
		}
		first, _ := g.Journal().FirstIndex()
		for i := max(first, from, 2); i <= to; i++ {
			want, err := leader.Journal().Frame(i)
			got, err2 := g.Journal().Frame(i)
			if err != nil || err2 != nil || !bytes.Equal(want, got) {
				w.violated("entry %d of the %s differs between %s (%v) and %s (%v)", i, name, lead.id, err, m.id, err2)
				return
			}
		}
	}
}

// checkRecords reads all that a member has.
func (w *world) checkRecords(m *machine) {
	g := m.process().journal.Load()
	for part := range uint32(partitions) {
		start, end := g.Journal().Bounds(part)
		values, err := readAll(g.Journal(), part, start, end)
		if err != nil {
			w.violated("reading all of partition %d on %s: %v", part, m.id, err)
			continue
		}
		w.checkPartition(m.id, part, start, values)
	}
}

func readAll(j *storage.Journal, part uint32, start, end int64) (values []string, err error) {
	for at := start; at < end; {
		c, err := j.Read(part, at, 1<<20, -1)
		if err != nil {
			return nil, err
		}
		if c.Next == at {
			return nil, fmt.Errorf("nothing at offset %d", at)
		}
		for _, p := range c.Pieces {
			err = decode(p, func(offset int64, v string) {
				if offset != start+int64(len(values)) {
					err = fmt.Errorf("offset %d follows %d", offset, start+int64(len(values))-1)
				}
				values = append(values, v)
			})
			if err != nil {
				return nil, err
			}
		}
		at = c.Next
		c.Release()
	}
	return values, nil
}

// checkPartition holds the records of a partition against the facts.
func (w *world) checkPartition(id string, part uint32, start int64, values []string) {
	f := &w.facts
	f.mu.Lock()
	defer f.mu.Unlock()
	at := map[string]int64{}
	for i, v := range values {
		offset := start + int64(i)
		if old, twice := at[v]; twice {
			w.violated("%s has %s at offsets %d and %d of partition %d", id, v, old, offset, part)
		}
		at[v] = offset
		if seen, ok := f.shown[part][offset]; ok && seen != v {
			w.violated("%s has %s at offset %d of partition %d, where %s was read", id, v, offset, part, seen)
		}
		if f.refused[v] {
			w.violated("%s has %s at offset %d of partition %d, which was refused", id, v, offset, part)
		}
	}
	for v, offset := range f.acked[part] {
		if got, ok := at[v]; offset >= start && (!ok || got != offset) {
			w.violated("%s has not %s at offset %d of partition %d, where it was acknowledged (%v, %d)", id, v, offset, part, ok, got)
		}
	}
	for n, all := range f.order {
		for i := 1; i < len(all); i++ {
			if a, b := all[i-1], all[i]; a.partition == part && b.partition == part && b.offset <= a.offset {
				w.violated("producer %d was told offset %d for %s and after that %d for %s", n, a.offset, a.value, b.offset, b.value)
			}
		}
	}
}

// checkFramesOfCommands compares the state machines, and what was acknowledged with what they have.
func (w *world) checkFramesOfCommands() {
	w.until(patience*10, func() bool { // followers apply what is committed when they hear of it
		_, leader := w.leader("commands")
		if leader == nil {
			return false
		}
		return w.sameStates() == ""
	})
	if why := w.sameStates(); why != "" {
		w.violated("%s", why)
		return
	}
	for _, m := range w.all {
		if !m.isMember() {
			continue
		}
		g := m.process().commands.Load()
		w.facts.mu.Lock()
		for _, c := range w.facts.applied {
			if n := g.of(c); n != 1 {
				w.violated("%s applied %s %d times, which was acknowledged", m.id, c, n)
			}
		}
		for c := range w.facts.refused {
			if n := g.of(c); c[0] == 'c' && n != 0 {
				w.violated("%s applied %s %d times, which was refused", m.id, c, n)
			}
		}
		w.facts.mu.Unlock()
		g.state.mu.Lock()
		for c, n := range g.data.Applied {
			if n != 1 {
				w.violated("%s applied %s %d times", m.id, c, n)
			}
		}
		g.state.mu.Unlock()
	}
}

// sameStates says in what the state machines differ.
func (w *world) sameStates() string {
	var first *machine
	var sum uint64
	var count int
	for _, m := range w.all {
		if !m.isMember() {
			continue
		}
		p := m.process()
		if p == nil || p.commands.Load() == nil {
			return m.id + " has no state machine"
		}
		_, s, n := p.commands.Load().sum()
		if first == nil {
			first, sum, count = m, s, n
		}
		if s != sum || n != count {
			return fmt.Sprintf("the state machines of %s (%d commands) and %s (%d) differ", first.id, count, m.id, n)
		}
	}
	return ""
}
