package check_test

import (
	"slices"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/jepsen/check"
	"github.com/daybook-data/daybook/internal/jepsen/history"
)

const patience = time.Minute

// script builds a history by hand: each operation begins when the one before has ended, unless it is changed.
type script struct {
	ops  []history.Op
	time int64
}

const p0 = history.Partition("s/0")

// add appends an operation that takes two ticks.
func (s *script) add(op history.Op) *history.Op {
	op.Index, op.Invoke, op.Complete = len(s.ops), s.time+1, s.time+2
	s.time += 2
	if op.Outcome == "" {
		op.Outcome = history.OK
	}
	if op.Outcome == history.Unknown {
		op.Complete = history.Never
	}
	if op.Kind == history.Txn && op.Outcome == history.OK && op.Ending == 0 {
		op.Ending = op.Invoke
	}
	s.ops = append(s.ops, op)
	return &s.ops[op.Index]
}

// at is a record with value v at offset o.
func at(v, o int64) history.Sent {
	return history.Sent{Partition: p0, Value: v, Offset: o, Outcome: history.OK}
}

// maybe is a record of which its sender knows nothing.
func maybe(v int64) history.Sent {
	return history.Sent{Partition: p0, Value: v, Offset: history.Nowhere, Outcome: history.Unknown}
}

func (s *script) send(session string, records ...history.Sent) *history.Op {
	outcome := history.OK
	for _, r := range records {
		if r.Outcome == history.Unknown {
			outcome = history.Unknown
		}
	}
	return s.add(history.Op{Session: session, Kind: history.Send, Sends: records, Outcome: outcome})
}

func (s *script) txn(outcome history.Outcome, records ...history.Sent) *history.Op {
	return s.add(history.Op{Session: "t", Kind: history.Txn, Sends: records, Outcome: outcome})
}

// reads are of values and offsets in turn.
func reads(pairs ...int64) (list []history.Read) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, history.Read{Partition: p0, Value: pairs[i], Offset: pairs[i+1]})
	}
	return list
}

func (s *script) poll(session string, pairs ...int64) *history.Op {
	return s.add(history.Op{Session: session, Kind: history.Poll, Committed: true, Reads: reads(pairs...)})
}

func (s *script) seek(session string, o int64) {
	s.add(history.Op{Session: session, Kind: history.Seek, Positions: []history.Position{{Partition: p0, Offset: o}}})
}

func (s *script) scan(end int64, pairs ...int64) *history.Op {
	return s.add(history.Op{Session: "scan", Kind: history.Scan, Committed: true, Positions: []history.Position{{Partition: p0, End: end}}, Reads: reads(pairs...)})
}

func (s *script) position(kind history.Kind, o int64) *history.Op {
	return s.add(history.Op{Session: "g", Kind: kind, Group: "g", Positions: []history.Position{{Partition: p0, Offset: o}}})
}

func (s *script) stream(kind history.Kind, outcome history.Outcome) {
	s.add(history.Op{Session: "m", Kind: kind, Stream: "m", Outcome: outcome})
}

// violations runs all of the checker.
func violations(t *testing.T, ops []history.Op) []check.Violation {
	t.Helper()
	all := check.History(ops)
	for _, judge := range []func([]history.Op, time.Duration) ([]check.Violation, error){check.Offsets, check.Registers} {
		more, err := judge(ops, patience)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	return all
}

// broken are histories that break one rule, or one and what follows from it.
var broken = []struct {
	name string
	rule []check.Rule
	ops  []int // whose operations must be in the evidence of the first rule
	make func(s *script)
}{
	{"an acknowledged record below what is read is read by nobody", []check.Rule{check.Lost}, []int{0}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1), at(3, 2))
		s.poll("c", 1, 0)
		s.seek("c", 2)
		s.poll("c", 3, 2)
	}},
	{"the end of what was acknowledged is gone from a later scan", []check.Rule{check.Unseen, check.ScanShort}, []int{0, 1}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.scan(1, 1, 0)
	}},
	{"an acknowledgement without an offset, and no record", []check.Rule{check.Unseen}, []int{0, 1}, func(s *script) {
		s.send("a", at(1, history.Nowhere))
		s.scan(0)
	}},
	{"one record twice", []check.Rule{check.Duplicate}, []int{0, 1}, func(s *script) {
		s.send("a", at(1, 0))
		s.scan(2, 1, 0, 1, 1)
	}},
	{"two records acknowledged at one offset", []check.Rule{check.Inconsistent, check.NotLinearizable}, []int{0, 1}, func(s *script) {
		s.send("a", at(1, 0)).Complete = 10
		s.send("b", at(2, 0))
		s.poll("c", 1, 0)
		s.poll("d", 2, 0)
	}},
	{"two readers see different records at one offset", []check.Rule{check.Inconsistent, check.NotLinearizable}, []int{2, 3}, func(s *script) {
		s.send("a", maybe(1))
		s.send("b", maybe(2))
		s.poll("c", 1, 0)
		s.poll("d", 2, 0)
	}},
	{"a record that nobody sent", []check.Rule{check.Phantom}, []int{0}, func(s *script) { s.poll("c", 7, 0) }},
	{"a record in another partition", []check.Rule{check.Phantom}, []int{0, 1}, func(s *script) {
		s.send("a", history.Sent{Partition: "s/1", Value: 1, Offset: history.Nowhere, Outcome: history.Unknown})
		s.poll("c", 1, 0)
	}},
	{"one operation's records in another order", []check.Rule{check.SendOrder}, []int{0}, func(s *script) {
		s.send("a", at(1, 1), at(2, 0))
		s.scan(2, 2, 0, 1, 1)
	}},
	{"two operations of a producer in another order", []check.Rule{check.SendOrder}, []int{0, 1}, func(s *script) {
		s.send("a", at(1, 1)).Complete = 20
		s.send("a", at(2, 0))
		s.scan(2, 2, 0, 1, 1)
	}},
	{"a record below one that was acknowledged before it was sent", []check.Rule{check.LateOffset, check.NotLinearizable}, []int{0, 1}, func(s *script) {
		s.send("a", at(1, 1))
		s.send("b", at(2, 0))
		s.scan(2, 2, 0, 1, 1)
	}},
	{"a record below one that was read before it was sent", []check.Rule{check.LateOffset}, []int{1, 2}, func(s *script) {
		s.send("a", maybe(1))
		s.poll("c", 1, 1)
		s.send("b", at(2, 0))
		s.scan(2, 2, 0, 1, 1)
	}},
	{"a poll that reads backwards", []check.Rule{check.PollOrder}, []int{1}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.poll("c", 2, 1, 1, 0)
	}},
	{"a poll that reads what the one before has read", []check.Rule{check.PollOrder}, []int{1, 2}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.poll("c", 1, 0, 2, 1)
		s.poll("c", 2, 1)
	}},
	{"a poll that skips", []check.Rule{check.PollSkip}, []int{0, 2}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1), at(3, 2))
		s.poll("d", 1, 0, 2, 1, 3, 2)
		s.poll("c", 1, 0, 3, 2)
	}},
	{"a skip between two polls", []check.Rule{check.PollSkip}, []int{0, 2, 3}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1), at(3, 2))
		s.poll("d", 1, 0, 2, 1, 3, 2)
		s.poll("c", 1, 0)
		s.poll("c", 3, 2)
	}},
	{"a poll that does not go on where it was told", []check.Rule{check.PollSkip}, []int{0, 2, 3}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.poll("d", 1, 0, 2, 1)
		s.seek("c", 0)
		s.poll("c", 2, 1)
	}},
	{"a scan with a hole", []check.Rule{check.ScanSkip}, []int{0, 2}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1), at(3, 2))
		s.poll("d", 1, 0, 2, 1, 3, 2)
		s.scan(3, 1, 0, 3, 2)
	}},
	{"a scan that lacks its last records", []check.Rule{check.ScanSkip}, []int{0, 2}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.poll("d", 1, 0, 2, 1)
		s.scan(2, 1, 0)
	}},
	{"one replica ends before the others", []check.Rule{check.ScanShort}, []int{0, 2}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.scan(2, 1, 0, 2, 1)
		s.scan(1, 1, 0)
	}},
	{"a refused record is there", []check.Rule{check.AbortedRead}, []int{0, 1}, func(s *script) {
		s.send("a", history.Sent{Partition: p0, Value: 1, Offset: history.Nowhere, Outcome: history.Fail})
		s.poll("c", 1, 0)
	}},
	{"a reader of committed records sees an aborted one", []check.Rule{check.AbortedRead}, []int{0, 1}, func(s *script) {
		s.txn(history.Fail, at(1, 0))
		s.poll("c", 1, 0)
	}},
	{"a record is read before its commit was asked for", []check.Rule{check.UncommittedRead}, []int{0, 1}, func(s *script) {
		op := s.txn(history.OK, at(1, 0))
		op.Ending, op.Complete = 20, 30
		s.poll("c", 1, 0)
	}},
	{"a transaction reads its own record", []check.Rule{check.UncommittedRead}, []int{0}, func(s *script) {
		op := s.txn(history.OK, at(1, 0))
		op.Committed, op.Reads = true, reads(1, 0)
	}},
	{"half of a transaction", []check.Rule{check.TornTxn}, []int{0, 1}, func(s *script) {
		op := s.txn(history.Unknown, at(1, 0), at(2, 1))
		op.Ending = op.Invoke
		s.poll("c", 1, 0)
		s.seek("d", 0)
		s.poll("d", 2, 1)
	}},
	{"transactions that read from each other", []check.Rule{check.Cycle}, []int{0, 1}, func(s *script) {
		a := s.txn(history.OK, at(1, 0))
		a.Complete = 20
		b := s.txn(history.OK, at(2, 1))
		b.Complete = 20
		s.ops[0].Session, s.ops[0].Ending, s.ops[1].Ending = "other", 10, 10
		s.ops[0].Reads, s.ops[1].Reads = reads(2, 1), reads(1, 0)
	}},
	{"a group commits what none of its members has read", []check.Rule{check.GroupSkip}, []int{0, 3}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1), at(3, 2))
		s.scan(3, 1, 0, 2, 1, 3, 2)
		s.poll("g", 1, 0).Group = "g"
		s.position(history.Commit, 2)
	}},
	{"an end below what was acknowledged before", []check.Rule{check.NotLinearizable}, []int{0, 1}, func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.position(history.End, 1)
		s.scan(2, 1, 0, 2, 1)
	}},
	{"an end that goes back", []check.Rule{check.NotLinearizable}, []int{1, 2}, func(s *script) {
		s.send("a", maybe(1))
		s.position(history.End, 1)
		s.position(history.End, 0)
		s.scan(1, 1, 0)
	}},
	{"an end that goes back after a record that was long on its way", []check.Rule{check.NotLinearizable}, []int{12, 13}, func(s *script) {
		s.send("b", at(2, 1)).Complete = 100
		for range 10 { // these are right: nothing need be there yet
			s.position(history.End, 0)
		}
		s.send("a", at(1, 0))
		s.position(history.End, 2)
		s.position(history.End, 1)
		s.scan(2, 1, 0, 2, 1)
	}},
	{"a group's offset that goes back", []check.Rule{check.NotLinearizable}, []int{1, 2}, func(s *script) {
		s.position(history.Commit, 1)
		s.position(history.Commit, 2)
		s.position(history.Fetch, 1)
	}},
	{"a group's offset that comes and goes", []check.Rule{check.NotLinearizable}, []int{2, 3}, func(s *script) {
		s.position(history.Commit, 1)
		s.position(history.Commit, 2).Outcome = history.Unknown
		s.ops[1].Complete = history.Never
		s.position(history.Fetch, 2)
		s.position(history.Fetch, 1)
	}},
	{"a stream that is made twice", []check.Rule{check.NotLinearizable}, []int{0, 1}, func(s *script) {
		s.stream(history.Create, history.OK)
		s.stream(history.Create, history.OK)
	}},
	{"a stream that was made is not there to be removed", []check.Rule{check.NotLinearizable}, []int{0, 1}, func(s *script) {
		s.stream(history.Create, history.OK)
		s.stream(history.Delete, history.Fail)
	}},
}

func TestEachRuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s script
			c.make(&s)
			found := violations(t, s.ops)
			var rules []check.Rule
			for _, v := range found {
				rules = append(rules, v.Rule)
			}
			slices.Sort(rules)
			want := slices.Sorted(slices.Values(c.rule))
			if !slices.Equal(slices.Compact(rules), want) {
				t.Fatalf("found %v, want %v: %v", rules, want, found)
			}
			i := slices.IndexFunc(found, func(v check.Violation) bool { return v.Rule == c.rule[0] })
			for _, index := range c.ops {
				if !slices.ContainsFunc(found[i].Ops, func(op history.Op) bool { return op.Index == index }) {
					t.Errorf("the evidence lacks operation %d: %v", index, found[i])
				}
			}
		})
	}
}

// clean are histories that break nothing, although they look it.
var clean = map[string]func(s *script){
	"nothing": func(*script) {},
	"an unknown record that is never there": func(s *script) {
		s.send("a", maybe(1))
		s.send("b", at(2, 0))
		s.scan(1, 2, 0)
	},
	"an unknown record that comes late": func(s *script) {
		s.send("a", maybe(1))
		s.send("b", at(2, 0))
		s.scan(1, 2, 0)
		s.scan(2, 2, 0, 1, 1)
	},
	"an aborted record is passed over, and seen by who reads all": func(s *script) {
		s.txn(history.Fail, at(1, 0))
		s.send("a", at(2, 1))
		s.scan(2, 2, 1)
		s.poll("c", 1, 0, 2, 1).Committed = false
	},
	"a transaction of unknown outcome that nobody sees": func(s *script) {
		s.txn(history.Unknown, at(1, 0), at(2, 1))
		s.send("a", at(3, 2))
		s.poll("c", 3, 2)
	},
	"markers take offsets": func(s *script) {
		s.txn(history.OK, at(1, 0))
		s.position(history.End, 2)
		s.send("a", at(2, 2))
		s.scan(3, 1, 0, 2, 2)
	},
	"a seek back and a seek to nowhere": func(s *script) {
		s.send("a", at(1, 0), at(2, 1), at(3, 2))
		s.scan(3, 1, 0, 2, 1, 3, 2)
		s.poll("c", 1, 0, 2, 1)
		s.seek("c", 1)
		s.poll("c", 2, 1)
		s.seek("c", history.Nowhere)
		s.poll("c", 1, 0)
	},
	"concurrent producers": func(s *script) {
		s.send("a", at(1, 1)).Complete = 30
		s.send("b", at(2, 0)).Complete = 30
		s.scan(2, 2, 0, 1, 1)
	},
	"a scan while records are written": func(s *script) {
		s.send("a", at(1, 0), at(2, 1)).Complete = 30
		s.scan(1, 1, 0)
		s.scan(2, 1, 0, 2, 1)
	},
	"a scan that did not end": func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.scan(2, 1, 0).Outcome = history.Unknown
		s.scan(2, 1, 0, 2, 1)
	},
	"a group reads twice what it had not committed": func(s *script) {
		s.send("a", at(1, 0), at(2, 1))
		s.poll("m1", 1, 0, 2, 1).Group = "g"
		s.poll("m2", 1, 0, 2, 1).Group = "g"
		s.position(history.Commit, 2)
	},
	"an unknown commit takes effect when it likes": func(s *script) {
		s.position(history.Commit, 1).Outcome = history.Unknown
		s.ops[0].Complete = history.Never
		s.position(history.Fetch, history.Nowhere)
		s.position(history.Fetch, 1)
	},
	"unknown makings and removals of a stream": func(s *script) {
		s.stream(history.Create, history.Unknown)
		s.stream(history.Create, history.Fail)
		s.stream(history.Delete, history.Unknown)
		s.stream(history.Delete, history.OK)
		s.stream(history.Create, history.OK)
		s.stream(history.Delete, history.OK)
	},
}

func TestNothingIsFoundWhereNothingIsBroken(t *testing.T) {
	t.Parallel()
	for name, build := range clean {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s script
			build(&s)
			if found := violations(t, s.ops); len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
}
