package check

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// judge asks porcupine about one object's operations. evidence returns some that have no order themselves, and says how
// they were found.
func judge(f *findings, model porcupine.Model, p history.Partition, what string, all []porcupine.Operation, patience time.Duration, evidence func() ([]porcupine.Operation, string)) error {
	switch porcupine.CheckOperationsTimeout(model, all, patience) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%s: porcupine has not judged %d operations within %s", what, len(all), patience)
	}
	some, found := evidence()
	var ops []*history.Op
	for _, o := range some {
		if op := o.Metadata.(*history.Op); !slices.Contains(ops, op) {
			ops = append(ops, op)
		}
	}
	slices.SortFunc(ops, func(a, b *history.Op) int { return cmp.Compare(a.Index, b.Index) })
	const shown = 12
	last := ops[max(0, len(ops)-shown):]
	f.add(NotLinearizable, p, -1, -1, last, "%s: no order of these operations, %s, gives these answers", what, found)
	return nil
}

// shorten returns the shortest beginning of the operations, by when they ended, that is not linearizable.
func shorten(model porcupine.Model, all []porcupine.Operation, patience time.Duration) ([]porcupine.Operation, string) {
	ended := slices.SortedFunc(slices.Values(all), func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	n := sort.Search(len(ended), func(i int) bool {
		return porcupine.CheckOperationsTimeout(model, upTo(ended, i), patience) == porcupine.Illegal
	})
	n = min(n+1, len(ended))
	return ended[:n], fmt.Sprintf("the last of the first %d", n)
}

// upTo is the history as it was when operation number at had ended: of others that had begun, nobody knows more.
func upTo(ended []porcupine.Operation, at int) []porcupine.Operation {
	now := ended[at].Return
	part := slices.Clone(ended[:at+1])
	for _, o := range ended[at+1:] {
		if o.Call <= now && o.Input.(mutation).changes() {
			o.Input, o.Return = o.Input.(mutation).pending(), history.Never
			part = append(part, o)
		}
	}
	return part
}

// mutation is an input that may have had an effect before anybody knew its answer.
type mutation interface {
	changes() bool
	// pending is the input of one whose answer is not known yet: any answer may come.
	pending() any
}
