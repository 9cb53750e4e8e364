package check

import (
	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// stop is where a session stands in a partition.
type stop struct {
	offset int64 // read last, or the one before where it was told to go on
	op     *history.Op
}

// checkPolls follows each session through its partitions.
func (x *index) checkPolls(f *findings) {
	at := map[lane]stop{}
	for i := range x.ops {
		op := &x.ops[i]
		switch op.Kind {
		case history.Seek:
			for _, p := range op.Positions {
				where := lane{op.Session, p.Partition}
				if p.Offset == history.Nowhere {
					delete(at, where)
					continue
				}
				at[where] = stop{p.Offset - 1, op}
			}
		case history.Poll, history.Txn:
			for _, r := range op.Reads {
				where := lane{op.Session, r.Partition}
				if was, ok := at[where]; ok {
					x.checkStep(f, op, was, r)
				}
				at[where] = stop{r.Offset, op}
			}
		}
	}
}

func (x *index) checkStep(f *findings, op *history.Op, was stop, r history.Read) {
	if r.Offset <= was.offset {
		f.add(PollOrder, r.Partition, r.Offset, was.offset, []*history.Op{was.op, op}, "session %s was at offset %d and then read offset %d", op.Session, was.offset, r.Offset)
		return
	}
	l := x.log(r.Partition)
	if o, ok := l.skipped(was.offset, r.Offset, op.Committed); ok {
		rule, witness := x.skip(l, o, PollSkip)
		f.add(rule, r.Partition, o, r.Offset, []*history.Op{was.op, op, l.witness(o), witness}, "session %s went from offset %d to %d and passed %d", op.Session, was.offset, r.Offset, o)
	}
}

// skip returns the rule that passing over o breaks, and who else knows of it: that of transactions, where o is part of
// one that only a reader of it knows to be committed.
func (x *index) skip(l *log, o int64, rule Rule) (Rule, *history.Op) {
	if w := x.writes[l.at[o][0].value]; w != nil && w.op.Kind == history.Txn && w.op.Outcome == history.Unknown {
		return TornTxn, x.torn[w.op.Index]
	}
	return rule, nil
}

// checkScans looks for what scans lack.
func (x *index) checkScans(f *findings) {
	for _, p := range x.partitions() {
		l := x.logs[p]
		for _, op := range l.scans {
			if op.Outcome != history.OK {
				continue
			}
			for _, at := range op.Positions {
				if at.Partition == p {
					x.checkScan(f, l, op, at)
				}
			}
		}
	}
}

func (x *index) checkScan(f *findings, l *log, op *history.Op, at history.Position) {
	last := at.Offset - 1
	step := func(to int64) {
		if o, ok := l.skipped(last, to, op.Committed); ok {
			rule, witness := x.skip(l, o, ScanSkip)
			f.add(rule, at.Partition, o, o, []*history.Op{op, l.witness(o), witness}, "a scan of offsets %d to %d lacks offset %d", at.Offset, at.End, o)
		}
	}
	for _, r := range op.Reads {
		if r.Partition != at.Partition {
			continue
		}
		if r.Offset <= last {
			f.add(PollOrder, at.Partition, r.Offset, last, []*history.Op{op}, "a scan read offset %d and then %d", last, r.Offset)
		}
		step(r.Offset)
		last = r.Offset
	}
	step(at.End)
	for o := range l.above(at.End) {
		for _, s := range l.at[o] {
			w := x.writes[s.value]
			if w != nil && w.outcome() == history.OK && w.op.Complete < op.Invoke {
				f.add(ScanShort, at.Partition, o, o, []*history.Op{w.op, op}, "a scan ends at offset %d, and offset %d was acknowledged before it began", at.End, o)
				return
			}
		}
	}
}

// above yields the known offsets from o on.
func (l *log) above(o int64) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for _, at := range l.offsets {
			if at >= o && !yield(at) {
				return
			}
		}
	}
}
