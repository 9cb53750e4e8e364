package vfs

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"slices"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// A Doubt is one change that a power cut may keep or lose: one sector of a write, a file's size, or a name.
type Doubt struct {
	Op   Op
	Name string // the file's, as it is or last was called
	Off  int64  // of the sector
	Seq  int    // number of the change; sectors of one write share it

	node  *node
	file  int // index into node.pending
	names int // index into renamed
	from  int // of the sector's bytes in the write's data
	to    int
}

func (d Doubt) String() string {
	if d.Op == OpWrite {
		return fmt.Sprintf("%d: write %s at %d", d.Seq, d.Name, d.Off)
	}
	return fmt.Sprintf("%d: %s %s", d.Seq, d.Op, d.Name)
}

// Doubts returns what a power cut at this moment may keep or lose, in the order in which it was done. The answer is
// for Crash, and valid until the next change.
func (m *Mem) Doubts() []Doubt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doubts()
}

// doubts is Doubts. The caller holds mu.
func (m *Mem) doubts() []Doubt {
	var all []Doubt
	for n, name := range m.nodes() {
		for i := range n.pending {
			all = appendDoubts(all, Doubt{Name: name, node: n, file: i}, &n.pending[i])
		}
	}
	for i, c := range m.renamed {
		name := c.now
		if name == "" {
			name = c.gone
		}
		all = append(all, Doubt{Op: c.op, Name: name, Seq: c.seq, names: i})
	}
	slices.SortFunc(all, func(a, b Doubt) int {
		if a.Seq != b.Seq {
			return a.Seq - b.Seq
		}
		return int(a.Off - b.Off)
	})
	return all
}

// appendDoubts splits a change of a file into what a disk does in one step.
func appendDoubts(all []Doubt, d Doubt, c *change) []Doubt {
	d.Op, d.Seq = c.op, c.seq
	if c.op != OpWrite {
		return append(all, d)
	}
	for at := 0; at < len(c.data); {
		d.Off = c.off + int64(at)
		d.from, d.to = at, min(len(c.data), at+int(sector-d.Off%sector))
		all, at = append(all, d), d.to
	}
	return all
}

// nodes returns every file that a cut could leave, with a name of it. The caller holds mu.
func (m *Mem) nodes() map[*node]string {
	all := map[*node]string{}
	for name, n := range m.durable {
		all[n] = name
	}
	for _, c := range m.renamed {
		if c.node != nil {
			all[c.node] = c.now
		}
	}
	return all
}

// Crash returns the file system as a power cut at this moment leaves it that keeps the given ones of Doubts, which
// must be in their order. All in it is durable, and locks are free.
func (m *Mem) Crash(kept []Doubt) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crash(kept)
}

// crash is Crash. The caller holds mu.
func (m *Mem) crash(kept []Doubt) *Mem {
	clone := NewMem()
	maps.Copy(clone.dirs, m.dirs)
	names := maps.Clone(m.durable)
	disks := map[*node][]byte{}
	for _, d := range kept {
		if d.node == nil {
			m.renamed[d.names].apply(names)
			continue
		}
		disk, ok := disks[d.node]
		if !ok {
			disk = bytes.Clone(d.node.synced)
		}
		c := d.node.pending[d.file]
		if c.op == OpWrite {
			c.off, c.data = d.Off, c.data[d.from:d.to]
		}
		disks[d.node] = c.apply(disk)
	}
	copies := map[*node]*node{}
	for name, n := range names {
		if copies[n] == nil {
			disk, ok := disks[n]
			if !ok {
				disk = n.synced
			}
			copies[n] = &node{data: disk, synced: disk, shared: true}
		}
		clone.names[name], clone.durable[name] = copies[n], copies[n]
	}
	return clone
}

// CrashClone is Crash with what rng picks of the doubts; nil picks nothing. Others may go on changing files meanwhile.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	var kept []Doubt
	for _, d := range m.doubts() {
		if rng != nil && rng.Intn(2) == 0 {
			kept = append(kept, d)
		}
	}
	return m.crash(kept)
}
