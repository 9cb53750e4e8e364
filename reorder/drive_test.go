package reorder_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/daybook-data/daybook/reorder"
)

// A driver runs a buffer behind a merge the way a sink worker does: partitions are
// read in pieces, frontiers and settling come at random, and now and then it is
// killed and goes on from its last checkpoint, having lost all that came after.
type driver struct {
	t      *testing.T
	rng    *rand.Rand
	opts   reorder.Options
	parts  []string
	events map[string][]event // by partition
	ticks  bool
	kills  int           // how often to kill it
	cuts   map[int64]int // by stamp: the length of the main output at boundaries

	merge *reorder.Merge[event]
	buf   *reorder.Buffer[event]
	at    map[string]int // index of the next event to read
	out   outputs

	saved    []byte // the encoded checkpoint
	savedOut outputs
	killed   int
}

func newDriver(t *testing.T, seed uint64, opts reorder.Options, parts []string, events []event) *driver {
	d := &driver{t: t, rng: rand.New(rand.NewPCG(seed, 1)), opts: opts, parts: parts, events: map[string][]event{}, cuts: map[int64]int{}}
	for _, e := range events {
		d.events[e.part] = append(d.events[e.part], e)
	}
	d.open()
	return d
}

// open starts from the saved checkpoint, or from the beginning.
func (d *driver) open() {
	d.t.Helper()
	var err error
	if d.buf, err = reorder.New[event](d.opts); err != nil {
		d.t.Fatal(err)
	}
	d.merge = reorder.NewMerge[event]()
	d.at = map[string]int{}
	d.out = d.savedOut
	d.out.Main = d.out.Main[:len(d.out.Main):len(d.out.Main)]
	d.out.Late = d.out.Late[:len(d.out.Late):len(d.out.Late)]
	d.out.Quarantine = d.out.Quarantine[:len(d.out.Quarantine):len(d.out.Quarantine)]
	if d.saved == nil {
		for _, p := range d.parts {
			d.buf.Assign(p)
			d.merge.Assign(p, reorder.MinTime)
		}
		return
	}
	var cp reorder.Checkpoint
	if err := cp.UnmarshalBinary(d.saved); err != nil {
		d.t.Fatal(err)
	}
	if err := d.buf.Restore(cp); err != nil {
		d.t.Fatal(err)
	}
	for _, st := range cp.Partitions {
		if d.buf.Assign(st.Name) != d.merge.Assign(st.Name, st.SeekStamp) {
			d.t.Fatalf("handles of %s differ", st.Name)
		}
		for d.at[st.Name] < len(d.events[st.Name]) && d.events[st.Name][d.at[st.Name]].pos < st.Seek {
			d.at[st.Name]++
		}
	}
}

func (d *driver) run(end bool) outputs {
	d.t.Helper()
	for {
		left := d.read()
		d.pump()
		if d.ticks && d.rng.IntN(3) == 0 {
			d.buf.Advance(d.merge.Frontier())
			d.drain()
		}
		if d.rng.IntN(6) == 0 {
			d.buf.Settle()
			d.drain()
		}
		if d.kills > 0 && d.rng.IntN(8) == 0 {
			d.save()
		}
		if d.kills > 0 && d.rng.IntN(16) == 0 {
			d.kills--
			d.killed++
			d.open()
			continue
		}
		if !left {
			break
		}
	}
	for i, p := range d.parts {
		_ = p
		d.merge.End(reorder.Partition(i))
	}
	d.pump()
	if end {
		d.buf.End()
	}
	d.drain()
	return d.out
}

// read moves a few events of random partitions into the merge.
func (d *driver) read() bool {
	left := false
	for i, name := range d.names() {
		p, all := reorder.Partition(i), d.events[name]
		for n := d.rng.IntN(8); n > 0 && d.at[name] < len(all); n-- {
			e := all[d.at[name]]
			d.at[name]++
			if err := d.merge.Push(p, e.j, e.pos, e); err != nil {
				d.t.Fatal(err)
			}
		}
		switch {
		case d.at[name] < len(all):
			left = true
			if d.ticks && d.rng.IntN(2) == 0 {
				d.merge.SetFrontier(p, all[d.at[name]].j) // the next may still be raised
			}
		case d.ticks && d.rng.IntN(2) == 0:
			d.merge.SetFrontier(p, d.lastStamp())
		}
	}
	return left
}

func (d *driver) names() []string {
	names := make([]string, len(d.parts))
	for i := range names {
		names[i] = d.buf.Name(reorder.Partition(i))
	}
	return names
}

func (d *driver) lastStamp() int64 {
	var last int64
	for _, all := range d.events {
		for _, e := range all {
			last = max(last, e.j)
		}
	}
	return last
}

func (d *driver) pump() {
	for {
		m, ok := d.merge.Pop()
		if !ok {
			return
		}
		e := m.Record
		err := d.buf.Push(reorder.Record[event]{
			Partition: m.Partition, Source: e.source, Position: m.Position, Stamp: m.Stamp, Time: e.ts, Size: e.size, Payload: e,
		})
		if err != nil {
			d.t.Fatal(err)
		}
		if d.buf.Boundary() {
			d.buf.Settle()
			d.drain()
			d.cuts[m.Stamp] = len(d.out.Main)
		}
		if d.rng.IntN(4) > 0 {
			d.drain()
		}
	}
}

func (d *driver) drain() {
	for g := d.buf.Next(); len(g) > 0; g = d.buf.Next() {
		for i := range g {
			d.collect(&g[i])
		}
	}
}

func (d *driver) collect(it *reorder.Item[event]) {
	e := it.Payload
	o := output{
		Part: e.part, Source: e.source, Pos: it.Position, Ts: e.ts, Time: it.Time, Stamp: it.Stamp, Late: it.Lateness(),
		Forced: it.Flags&reorder.Forced != 0, Passed: it.Flags&reorder.Passed != 0, Clamped: it.Flags&reorder.Clamped != 0,
	}
	if e.pos != it.Position || d.buf.Name(it.Partition) != e.part {
		d.t.Fatalf("item %s:%d carries the payload of %s:%d", d.buf.Name(it.Partition), it.Position, e.part, e.pos)
	}
	if name := d.buf.Source(it); name != e.source && (e.source != "" || name != e.part) {
		d.t.Fatalf("item of source %q is said to be of %q", e.source, name)
	}
	switch it.Kind {
	case reorder.Main:
		d.out.Main = append(d.out.Main, o)
	case reorder.Late:
		d.out.Late = append(d.out.Late, o)
	case reorder.Quarantine:
		d.out.Quarantine = append(d.out.Quarantine, o)
	}
}

// save takes a checkpoint, as a sink does that has made all output durable.
func (d *driver) save() {
	d.t.Helper()
	d.buf.Settle()
	d.drain()
	cp, err := d.buf.Checkpoint()
	if err != nil {
		d.t.Fatal(err)
	}
	for i, st := range cp.Partitions {
		if i > 0 && cp.Partitions[i-1].Name >= st.Name {
			d.t.Fatal("partitions of the checkpoint are not in order")
		}
		if low := d.buf.Low(d.buf.Assign(st.Name)); low != st.Low {
			d.t.Fatalf("Low(%s) = %d, checkpoint has %d", st.Name, low, st.Low)
		}
	}
	if d.saved, err = cp.MarshalBinary(); err != nil {
		d.t.Fatal(err)
	}
	d.savedOut = d.out
}

func (o output) String() string {
	s := fmt.Sprintf("%s%d:%d", o.Part, o.Pos, o.Ts)
	if o.Source != "" {
		s = fmt.Sprintf("%s.%s%d:%d", o.Part, o.Source, o.Pos, o.Ts)
	}
	return s
}
