package check

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// grow is an append at an offset, or a look at the end, which is the offset of the next append.
type grow struct {
	append bool
	offset int64
	before int64 // the highest offset below that holds a record; Nowhere if none
}

func (g grow) changes() bool { return g.append }

// end is the model of a partition: its state is its end. An append is at the end, and an end is what the last append
// left. Offsets that nobody knows a record of (transactions' markers take some) may lie between.
var end = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		at, in := state.(int64), input.(grow)
		if at > in.offset || in.before >= at {
			return false, state
		}
		if in.append {
			return true, in.offset + 1
		}
		return true, in.offset
	},
}

// Offsets returns the partitions whose appends and ends, as their leaders tell them, have no order in real time. The
// error says that it took longer than patience to find out.
func Offsets(ops []history.Op, patience time.Duration) ([]Violation, error) {
	x := newIndex(ops)
	f := &findings{count: map[Rule]int{}}
	all := map[history.Partition][]porcupine.Operation{}
	for _, w := range x.writes {
		if w.offset == history.Nowhere {
			continue // nobody has seen it: it need not have happened
		}
		p := w.sent.Partition
		o := porcupine.Operation{Input: grow{true, w.offset, x.logs[p].below(w.offset)}, Call: w.op.Invoke, Return: history.Never, Metadata: w.op}
		if w.sent.Outcome == history.OK {
			o.Return = w.op.Complete
		}
		all[p] = append(all[p], o)
	}
	for i := range ops {
		op := &ops[i]
		if op.Kind != history.End || op.Outcome != history.OK {
			continue
		}
		for _, at := range op.Positions {
			o := porcupine.Operation{Input: grow{false, at.Offset, x.log(at.Partition).below(at.Offset)}, Call: op.Invoke, Return: op.Complete, Metadata: op}
			all[at.Partition] = append(all[at.Partition], o)
		}
	}
	var errs []error
	for _, p := range x.partitions() {
		errs = append(errs, judge(f, end, p, fmt.Sprintf("offsets of %s", p), all[p], patience))
	}
	return f.told(), errors.Join(errs...)
}

// below returns the highest known offset below o.
func (l *log) below(o int64) int64 {
	i, _ := slices.BinarySearch(l.offsets, o)
	if i == 0 {
		return history.Nowhere
	}
	return l.offsets[i-1]
}
