package check

import (
	"maps"
	"slices"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// checkTxns looks for records that nobody may have read, or not yet.
func (x *index) checkTxns(f *findings) {
	for i := range x.ops {
		op := &x.ops[i]
		for _, r := range op.Reads {
			w := x.writes[r.Value]
			if w == nil {
				continue
			}
			ops := []*history.Op{w.op, op}
			switch {
			case w.op.Kind != history.Txn:
				if w.sent.Outcome == history.Fail {
					f.add(AbortedRead, r.Partition, r.Offset, r.Offset, ops, "value %d at offset %d was refused", r.Value, r.Offset)
				}
			case !op.Committed:
			case w.op.Outcome == history.Fail:
				f.add(AbortedRead, r.Partition, r.Offset, r.Offset, ops, "value %d at offset %d is of an aborted transaction", r.Value, r.Offset)
			case w.op.Ending == 0 || w.op.Ending > readBy(op) || w.op.Index == op.Index:
				f.add(UncommittedRead, r.Partition, r.Offset, r.Offset, ops, "value %d at offset %d was read before its transaction was committed", r.Value, r.Offset)
			}
		}
	}
}

// readBy is the time at which an operation had all of its reads.
func readBy(op *history.Op) int64 {
	if op.Kind == history.Txn && op.Ending != 0 {
		return op.Ending
	}
	return op.Complete
}

// checkCycles looks for transactions that read, over however many others, what depends on them.
func (x *index) checkCycles(f *findings) {
	reads := map[int][]int{} // by transaction: those it read from
	for i := range x.ops {
		op := &x.ops[i]
		if op.Kind != history.Txn || op.Outcome == history.Fail {
			continue
		}
		for _, r := range op.Reads {
			if w := x.writes[r.Value]; w != nil && w.op.Kind == history.Txn && w.op.Index != op.Index {
				reads[op.Index] = append(reads[op.Index], w.op.Index)
			}
		}
	}
	const entered, left = 1, 2
	state := map[int]int{}
	var path []int
	var visit func(t int)
	visit = func(t int) {
		state[t] = entered
		path = append(path, t)
		for _, from := range reads[t] {
			switch state[from] {
			case 0:
				visit(from)
			case entered:
				var ops []*history.Op
				for _, on := range path[slices.Index(path, from):] {
					ops = append(ops, &x.ops[on])
				}
				f.add(Cycle, "", 0, 0, ops, "%d transactions have read each other's records", len(ops))
			}
		}
		path = path[:len(path)-1]
		state[t] = left
	}
	for _, t := range slices.Sorted(maps.Keys(reads)) {
		if state[t] == 0 {
			visit(t)
		}
	}
}

// checkGroups looks for records that a group has put behind it and no member has read.
func (x *index) checkGroups(f *findings) {
	type share struct {
		group string
		p     history.Partition
	}
	done := map[share]*history.Op{}
	ends := map[share]int64{}
	read := map[share]map[int64]bool{}
	members := map[string]bool{}
	for i := range x.ops {
		op := &x.ops[i]
		if op.Group == "" {
			continue
		}
		switch op.Kind {
		case history.Poll, history.Txn:
			members[op.Group] = true
			for _, r := range op.Reads {
				s := share{op.Group, r.Partition}
				if read[s] == nil {
					read[s] = map[int64]bool{}
				}
				read[s][r.Offset] = true
			}
		}
		if (op.Kind == history.Commit || op.Kind == history.Txn) && op.Outcome == history.OK {
			for _, p := range op.Positions {
				if s := (share{op.Group, p.Partition}); p.Offset > ends[s] {
					ends[s], done[s] = p.Offset, op
				}
			}
		}
	}
	for s, end := range ends {
		if !members[s.group] {
			continue
		}
		l := x.log(s.p)
		for _, o := range l.visible {
			if o >= end {
				break
			}
			if !read[s][o] {
				f.add(GroupSkip, s.p, o, o, []*history.Op{done[s], l.witness(o)}, "group %s has committed offset %d, and none of its members has read offset %d", s.group, end, o)
			}
		}
	}
}
