package check

import (
	"cmp"
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
		errs = append(errs, judge(f, end, p, fmt.Sprintf("offsets of %s", p), all[p], patience, func() ([]porcupine.Operation, string) { return disorder(all[p]) }))
	}
	return f.told(), errors.Join(errs...)
}

// place orders operations as the partition does: an end is where the next append goes.
func place(a, b porcupine.Operation) int {
	x, y := a.Input.(grow), b.Input.(grow)
	switch {
	case x.offset != y.offset:
		return cmp.Compare(x.offset, y.offset)
	case x.append == y.append:
		return 0
	case y.append:
		return -1
	}
	return 1
}

// disorder returns two operations of which the second comes before the first in the partition, and began after that had
// ended. Where appends at different offsets and ends have no order there are always two.
func disorder(all []porcupine.Operation) ([]porcupine.Operation, string) {
	placed := slices.SortedFunc(slices.Values(all), place)
	last, at := 0, 0 // of those placed before the ones at, which are in one place: the last to begin
	for i, o := range placed {
		if place(placed[at], o) < 0 {
			for ; at < i; at++ {
				if placed[at].Call > placed[last].Call {
					last = at
				}
			}
		}
		if last < at && placed[last].Call > o.Return {
			return []porcupine.Operation{o, placed[last]}, "the second of which began after the first had ended, and comes before it"
		}
	}
	return all, "all"
}

// below returns the highest known offset below o.
func (l *log) below(o int64) int64 {
	i, _ := slices.BinarySearch(l.offsets, o)
	if i == 0 {
		return history.Nowhere
	}
	return l.offsets[i-1]
}
