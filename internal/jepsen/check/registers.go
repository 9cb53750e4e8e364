package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// touch is one operation on something that holds one number: a group's offset in a partition, or whether a stream is
// there.
type touch struct {
	kind    history.Kind
	outcome history.Outcome
	offset  int64
}

func (t touch) pending() any {
	t.outcome = history.Unknown
	return t
}

func (t touch) changes() bool { return t.kind != history.Fetch && t.outcome != history.Fail }

// offset is the model of a group's offset in a partition.
var offset = porcupine.Model{
	Init: func() any { return int64(history.Nowhere) },
	Step: func(state, input, _ any) (bool, any) {
		in := input.(touch)
		if in.kind == history.Commit {
			return true, in.offset
		}
		return state.(int64) == in.offset, state
	},
}

// presence is the model of a stream.
var presence = porcupine.Model{
	Init: func() any { return false },
	Step: func(state, input, _ any) (bool, any) {
		there, in := state.(bool), input.(touch)
		create := in.kind == history.Create
		switch in.outcome {
		case history.OK:
			return there != create, create
		case history.Fail:
			return there == create, there
		}
		return true, create
	},
}

// Registers returns the groups' offsets and the streams that do not behave as if they stood in one place. Groups that
// commit in transactions are left out: these become visible when their markers arrive.
func Registers(ops []history.Op, patience time.Duration) ([]Violation, error) {
	f := &findings{count: map[Rule]int{}}
	offsets, streams := map[string][]porcupine.Operation{}, map[string][]porcupine.Operation{}
	left, fetched := map[string]bool{}, map[history.Position]bool{}
	for i := range ops {
		if ops[i].Kind == history.Fetch {
			for _, p := range ops[i].Positions {
				fetched[p] = true
			}
		}
	}
	for i := range ops {
		op := &ops[i]
		if op.Outcome == history.Nothing {
			continue
		}
		if op.Kind == history.Txn {
			left[op.Group] = true
		}
		o := porcupine.Operation{Call: op.Invoke, Return: op.Complete, Metadata: op}
		switch op.Kind {
		case history.Commit, history.Fetch:
			if op.Outcome == history.Fail || op.Kind == history.Fetch && op.Outcome != history.OK {
				continue
			}
			for _, p := range op.Positions {
				if op.Outcome == history.Unknown && !fetched[p] {
					continue // need not have happened; porcupine's work doubles with each
				}
				o.Input = touch{op.Kind, op.Outcome, p.Offset}
				name := fmt.Sprintf("offset of group %s in %s", op.Group, p.Partition)
				offsets[name] = append(offsets[name], o)
			}
		case history.Create, history.Delete:
			o.Input = touch{kind: op.Kind, outcome: op.Outcome}
			name := "stream " + op.Stream
			streams[name] = append(streams[name], o)
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(offsets)) {
		if all := offsets[name]; !left[all[0].Metadata.(*history.Op).Group] {
			errs = append(errs, judge(f, offset, "", name, all, patience, func() ([]porcupine.Operation, string) { return shorten(offset, all, patience) }))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		all := streams[name]
		errs = append(errs, judge(f, presence, "", name, all, patience, func() ([]porcupine.Operation, string) { return shorten(presence, all, patience) }))
	}
	return f.told(), errors.Join(errs...)
}
