package check

import (
	"maps"
	"slices"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// index is a history by what it says of each record and each offset.
type index struct {
	ops    []history.Op
	writes map[int64]*write // by value
	logs   map[history.Partition]*log
	torn   map[int]*history.Op // by the index of a transaction with unknown outcome: a reader of committed records that saw some of it
}

// write is a record as its producer knows it, and as readers do.
type write struct {
	op     *history.Op
	sent   history.Sent
	offset int64 // where it is known to lie; Nowhere if nobody knows
	seen   *history.Op
}

// outcome is the record's own, or that of its transaction.
func (w *write) outcome() history.Outcome {
	if w.op.Kind == history.Txn {
		return w.op.Outcome
	}
	return w.sent.Outcome
}

// log is what is known of a partition.
type log struct {
	at      map[int64][]sight // by offset
	offsets []int64           // of at, sorted
	visible []int64           // those that readers of committed records must see, sorted
	highest int64             // the highest that was read; Nowhere if none
	scans   []*history.Op
}

// sight says that an operation has a value at an offset, or was told so.
type sight struct {
	value int64
	op    *history.Op
	read  bool
}

func newIndex(ops []history.Op) *index {
	x := &index{ops: ops, writes: map[int64]*write{}, logs: map[history.Partition]*log{}, torn: map[int]*history.Op{}}
	for i := range ops {
		x.addSends(&ops[i])
	}
	for i := range ops {
		x.addReads(&ops[i])
	}
	for _, l := range x.logs {
		l.offsets = slices.Sorted(maps.Keys(l.at))
		for _, o := range l.offsets {
			if w := x.writes[l.at[o][0].value]; w != nil && x.mustSee(w) {
				l.visible = append(l.visible, o)
			}
		}
	}
	return x
}

func (x *index) log(p history.Partition) *log {
	l := x.logs[p]
	if l == nil {
		l = &log{at: map[int64][]sight{}, highest: history.Nowhere}
		x.logs[p] = l
	}
	return l
}

func (x *index) addSends(op *history.Op) {
	for _, s := range op.Sends {
		w := &write{op: op, sent: s, offset: s.Offset}
		x.writes[s.Value] = w
		if s.Offset != history.Nowhere {
			l := x.log(s.Partition)
			l.at[s.Offset] = append(l.at[s.Offset], sight{value: s.Value, op: op})
		}
	}
}

func (x *index) addReads(op *history.Op) {
	if op.Kind == history.Scan {
		for _, p := range op.Positions {
			l := x.log(p.Partition)
			l.scans = append(l.scans, op)
		}
	}
	for _, r := range op.Reads {
		l := x.log(r.Partition)
		l.highest = max(l.highest, r.Offset)
		l.at[r.Offset] = append(l.at[r.Offset], sight{value: r.Value, op: op, read: true})
		w := x.writes[r.Value]
		if w == nil {
			continue
		}
		if w.seen == nil {
			w.seen = op
		}
		if w.offset == history.Nowhere && w.sent.Partition == r.Partition {
			w.offset = r.Offset
		}
		if op.Committed && w.op.Kind == history.Txn && w.op.Outcome == history.Unknown && x.torn[w.op.Index] == nil {
			x.torn[w.op.Index] = op
		}
	}
}

// mustSee says whether who reads committed records must see this one: one of an unknown outcome if anybody did, and
// then all of its transaction.
func (x *index) mustSee(w *write) bool {
	switch w.outcome() {
	case history.OK:
		return true
	case history.Fail:
		return false
	}
	if w.op.Kind == history.Txn {
		return x.torn[w.op.Index] != nil
	}
	return w.seen != nil
}

// skipped returns the first offset between lo and hi, both excluded, that a reader must have seen.
func (l *log) skipped(lo, hi int64, committed bool) (int64, bool) {
	list := l.offsets
	if committed {
		list = l.visible
	}
	i, _ := slices.BinarySearch(list, lo+1)
	if i < len(list) && list[i] < hi {
		return list[i], true
	}
	return 0, false
}

// witness is an operation that knows what lies at an offset.
func (l *log) witness(o int64) *history.Op {
	if s := l.at[o]; len(s) > 0 {
		return s[0].op
	}
	return nil
}
