package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/daybook-data/daybook/internal/jepsen/check"
	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// world is a journal that is right, of one partition, and clients of it. Its history is valid by construction.
type world struct {
	script
	rnd  *rand.Rand
	next int64 // value
	log  []entry
	at   map[string]int // readers' places
}

// entry is what lies at an offset. A marker has no value.
type entry struct {
	value   int64
	visible bool // to readers of committed records
}

// live lets several sessions do n things at random, and then scans the log.
func live(seed uint64, n int) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), at: map[string]int{}}
	for range n {
		session := fmt.Sprint(w.rnd.IntN(3))
		switch k := w.rnd.IntN(10); {
		case k < 4:
			w.produce("p" + session)
		case k < 5:
			w.transact("t" + session)
		case k < 8:
			w.read("c" + session)
		case k < 9:
			w.again("c" + session)
		default:
			w.position(history.End, int64(len(w.log)))
		}
	}
	// What no reader came to is read here, so that any loss shows.
	w.scanAll()
	w.scanAll()
	return w
}

func (w *world) append(visible bool) history.Sent {
	w.next++
	w.log = append(w.log, entry{w.next, visible})
	return at(w.next, int64(len(w.log)-1))
}

func (w *world) produce(session string) {
	var records []history.Sent
	for range 1 + w.rnd.IntN(3) {
		switch w.rnd.IntN(8) {
		case 0: // has not arrived, or has, and nobody told its sender
			w.next++
			records = append(records, maybe(w.next))
		case 1:
			sent := w.append(true)
			records = append(records, maybe(sent.Value))
		default:
			records = append(records, w.append(true))
		}
	}
	w.send(session, records...)
}

func (w *world) transact(session string) {
	outcome := []history.Outcome{history.OK, history.OK, history.Fail, history.Unknown}[w.rnd.IntN(4)]
	visible := outcome == history.OK || outcome == history.Unknown && w.rnd.IntN(2) == 0
	records := []history.Sent{w.append(visible), w.append(visible)}
	op := w.txn(outcome, records...)
	op.Session, op.Ending = session, op.Invoke
	w.log = append(w.log, entry{}) // its marker
}

func (w *world) read(session string) {
	from := w.at[session]
	to := min(from+w.rnd.IntN(5), len(w.log))
	w.at[session] = to
	w.poll(session, w.pairs(from, to)...)
}

func (w *world) again(session string) {
	if len(w.log) > 0 {
		w.at[session] = w.rnd.IntN(len(w.log))
		w.seek(session, int64(w.at[session]))
	}
}

func (w *world) scanAll() { w.scan(int64(len(w.log)), w.pairs(0, len(w.log))...) }

func (w *world) pairs(from, to int) (pairs []int64) {
	for o := from; o < to; o++ {
		if e := w.log[o]; e.visible {
			pairs = append(pairs, e.value, int64(o))
		}
	}
	return pairs
}

// pick returns one of the reads of an operation, of which f says whether it will do.
func (w *world) pick(f func(op *history.Op, i int) bool) (*history.Op, int) {
	for range 100_000 {
		op := &w.ops[w.rnd.IntN(len(w.ops))]
		if len(op.Reads) == 0 {
			continue
		}
		if i := w.rnd.IntN(len(op.Reads)); f(op, i) {
			return op, i
		}
	}
	panic("no operation will do")
}

func (w *world) sender(value int64) (*history.Op, *history.Sent) {
	for i := range w.ops {
		for j := range w.ops[i].Sends {
			if s := &w.ops[i].Sends[j]; s.Value == value {
				return &w.ops[i], s
			}
		}
	}
	return nil, nil
}

func (w *world) acknowledged(op *history.Op, i int) bool {
	sent, s := w.sender(op.Reads[i].Value)
	return s.Outcome == history.OK && (sent.Kind == history.Send || sent.Outcome == history.OK)
}

// forget removes a value from all that was read.
func (w *world) forget(value int64) {
	for i := range w.ops {
		w.ops[i].Reads = slices.DeleteFunc(slices.Clone(w.ops[i].Reads), func(r history.Read) bool { return r.Value == value })
	}
}

// inner says that others were read before and behind, in the same operation.
func inner(op *history.Op, i int) bool { return i > 0 && i < len(op.Reads)-1 }

// faults each break one promise in a valid history.
var faults = map[check.Rule]func(w *world){
	check.Lost: func(w *world) {
		op, i := w.pick(func(op *history.Op, i int) bool {
			return op.Kind == history.Scan && inner(op, i) && w.acknowledged(op, i)
		})
		w.forget(op.Reads[i].Value)
	},
	check.Unseen: func(w *world) {
		w.send("p9", w.append(true))
		w.scan(int64(len(w.log)-1), w.pairs(0, len(w.log)-1)...)
	},
	check.Duplicate: func(w *world) {
		op, i := w.pick(func(op *history.Op, _ int) bool { return op.Kind == history.Scan })
		w.log = append(w.log, entry{op.Reads[i].Value, true})
		w.scanAll()
	},
	check.Inconsistent: func(w *world) {
		op, i := w.pick(w.acknowledged)
		op.Reads = slices.Clone(op.Reads)
		op.Reads[i].Value = w.next + 1
	},
	check.Phantom: func(w *world) {
		w.log = append(w.log, entry{w.next + 1, true})
		w.scanAll()
	},
	check.SendOrder: func(w *world) {
		first, second := w.append(true), w.append(true)
		w.send("p9", second, first)
		w.scanAll()
	},
	check.LateOffset: func(w *world) {
		first, second := w.append(true), w.append(true)
		w.send("p8", second)
		w.send("p9", first)
		w.scanAll()
	},
	check.PollOrder: func(w *world) {
		op, i := w.pick(func(op *history.Op, i int) bool { return op.Kind == history.Poll && inner(op, i) })
		op.Reads = slices.Insert(slices.Clone(op.Reads), i+1, op.Reads[i-1])
	},
	check.PollSkip: func(w *world) {
		op, i := w.pick(func(op *history.Op, i int) bool {
			return op.Kind == history.Poll && inner(op, i) && w.acknowledged(op, i)
		})
		op.Reads = slices.Delete(slices.Clone(op.Reads), i, i+1)
	},
	check.ScanSkip: func(w *world) {
		op, i := w.pick(func(op *history.Op, i int) bool { return op.Kind == history.Scan && w.acknowledged(op, i) })
		op.Reads = slices.Delete(slices.Clone(op.Reads), i, i+1)
	},
	check.AbortedRead: func(w *world) {
		op, i := w.pick(func(op *history.Op, i int) bool { return op.Kind == history.Scan })
		sent, s := w.sender(op.Reads[i].Value)
		s.Outcome = history.Fail
		if sent.Kind == history.Txn {
			sent.Outcome = history.Fail
		}
	},
	check.UncommittedRead: func(w *world) {
		op, i := w.pick(func(op *history.Op, i int) bool {
			sent, _ := w.sender(op.Reads[i].Value)
			return sent.Kind == history.Txn
		})
		sent, _ := w.sender(op.Reads[i].Value)
		sent.Ending = op.Complete + 1
	},
	check.TornTxn: func(w *world) {
		op, i := w.pick(func(op *history.Op, i int) bool {
			sent, _ := w.sender(op.Reads[i].Value)
			return sent.Kind == history.Txn && op.Kind == history.Scan
		})
		sent, _ := w.sender(op.Reads[i].Value)
		sent.Outcome, sent.Complete = history.Unknown, history.Never
		op.Reads = slices.Delete(slices.Clone(op.Reads), i, i+1)
	},
	check.NotLinearizable: func(w *world) {
		w.send("p9", w.append(true))
		w.position(history.End, int64(len(w.log)-1))
	},
}

func TestOneFaultInAValidHistoryIsFound(t *testing.T) {
	t.Parallel()
	const seeds, length = 60, 150
	for rule, inject := range faults {
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seeds) {
				w := live(seed, length)
				inject(w)
				found := violations(t, w.ops)
				if !slices.ContainsFunc(found, func(v check.Violation) bool { return v.Rule == rule }) {
					t.Fatalf("seed %d: the fault is not found, but %v", seed, found)
				}
			}
		})
	}
}

func TestValidHistoriesAreClean(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		if found := violations(t, live(seed, 200).ops); len(found) > 0 {
			t.Fatalf("seed %d: found %v", seed, found)
		}
	}
}
