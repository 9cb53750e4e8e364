package check

import (
	"cmp"
	"slices"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// lane is one session's way through one partition.
type lane struct {
	session   string
	partition history.Partition
}

// checkSendOrder holds what each session sent against where it lies.
func (x *index) checkSendOrder(f *findings) {
	last := map[lane]*write{}
	for i := range x.ops {
		op := &x.ops[i]
		for _, s := range op.Sends {
			w := x.writes[s.Value]
			if w.offset == history.Nowhere {
				continue
			}
			at := lane{op.Session, s.Partition}
			if before := last[at]; before != nil && w.offset <= before.offset {
				f.add(SendOrder, s.Partition, w.offset, before.offset, []*history.Op{before.op, op},
					"session %s sent %d before %d: they are at offsets %d and %d", op.Session, before.sent.Value, s.Value, before.offset, w.offset)
			}
			last[at] = w
		}
	}
}

// checkLate looks for records that came to lie below what was acknowledged or read before they were sent.
func (x *index) checkLate(f *findings) {
	for _, p := range x.partitions() {
		l := x.logs[p]
		earliest := (*history.Op)(nil) // of those that know an offset further up, the first to have ended
		high := int64(0)
		for _, o := range slices.Backward(l.offsets) {
			for _, s := range l.at[o] {
				if w := x.writes[s.value]; w != nil && earliest != nil && w.op.Invoke > earliest.Complete {
					f.add(LateOffset, p, o, high, []*history.Op{w.op, earliest}, "value %d lies at offset %d; before it was sent, offset %d was taken", s.value, o, high)
					break
				}
			}
			first := slices.MinFunc(l.at[o], func(a, b sight) int { return cmp.Compare(a.op.Complete, b.op.Complete) }).op
			if earliest == nil || first.Complete < earliest.Complete {
				earliest, high = first, o
			}
		}
	}
}
