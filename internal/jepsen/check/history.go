package check

import (
	"maps"
	"slices"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// History returns what breaks the rules of the log, at most 20 of each rule.
func History(ops []history.Op) []Violation {
	x := newIndex(ops)
	f := &findings{count: map[Rule]int{}}
	x.checkLogs(f)
	x.checkWrites(f)
	x.checkSendOrder(f)
	x.checkLate(f)
	x.checkPolls(f)
	x.checkScans(f)
	x.checkTxns(f)
	x.checkCycles(f)
	x.checkGroups(f)
	return f.told()
}

// partitions returns the partitions in order, so that reports are the same each time.
func (x *index) partitions() []history.Partition { return slices.Sorted(maps.Keys(x.logs)) }

// checkLogs looks for offsets with several values, and for values at several offsets.
func (x *index) checkLogs(f *findings) {
	type place struct {
		p history.Partition
		o int64
	}
	places := map[int64]place{}
	told := map[int64]bool{}
	for _, p := range x.partitions() {
		l := x.logs[p]
		for _, o := range l.offsets {
			first := l.at[o][0]
			for _, s := range l.at[o] {
				if s.value != first.value {
					f.add(Inconsistent, p, o, o, []*history.Op{first.op, s.op}, "offset %d holds %d and %d", o, first.value, s.value)
					break
				}
			}
			for _, s := range l.at[o] {
				was, ok := places[s.value]
				switch {
				case !ok:
					places[s.value] = place{p, o}
				case was != place{p, o} && !told[s.value]:
					told[s.value] = true
					f.add(Duplicate, p, o, o, []*history.Op{x.logs[was.p].witness(was.o), s.op}, "value %d is at offset %d of %s and at offset %d", s.value, was.o, was.p, o)
				}
			}
		}
	}
}

// checkWrites looks for what was acknowledged and is not there, and for what is there and was never sent.
func (x *index) checkWrites(f *findings) {
	for _, v := range slices.Sorted(maps.Keys(x.writes)) {
		w := x.writes[v]
		if w.outcome() != history.OK || w.seen != nil {
			continue
		}
		p := w.sent.Partition
		l := x.log(p)
		if w.offset != history.Nowhere && w.offset < l.highest {
			f.add(Lost, p, w.offset, w.offset, []*history.Op{w.op}, "value %d was acknowledged at offset %d and never read; others were, up to offset %d", v, w.offset, l.highest)
			continue
		}
		for _, s := range l.scans {
			if s.Outcome == history.OK && s.Invoke > w.op.Complete {
				f.add(Unseen, p, w.offset, w.offset, []*history.Op{w.op, s}, "value %d was acknowledged at offset %d and is not in a scan that began later", v, w.offset)
				break
			}
		}
	}
	for i := range x.ops {
		for _, r := range x.ops[i].Reads {
			w := x.writes[r.Value]
			switch {
			case w == nil:
				f.add(Phantom, r.Partition, r.Offset, r.Offset, []*history.Op{&x.ops[i]}, "value %d at offset %d was never sent", r.Value, r.Offset)
			case w.sent.Partition != r.Partition:
				f.add(Phantom, r.Partition, r.Offset, r.Offset, []*history.Op{w.op, &x.ops[i]}, "value %d at offset %d was sent to %s", r.Value, r.Offset, w.sent.Partition)
			}
		}
	}
}
