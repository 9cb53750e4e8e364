package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// Rule is what a violation breaks.
type Rule string

// The rules.
const (
	// Lost is an acknowledged record that nobody read, although somebody read further.
	Lost Rule = "lost"
	// Unseen is an acknowledged record behind all that was read, which a later scan of the partition has not.
	Unseen Rule = "unseen"
	// Duplicate is a record at two offsets.
	Duplicate Rule = "duplicate"
	// Inconsistent is an offset with two records.
	Inconsistent Rule = "inconsistent-offset"
	// Phantom is a record that nobody sent, or not to this partition.
	Phantom Rule = "phantom"
	// SendOrder is a session's record that lies before one that it sent earlier, in one operation or two.
	SendOrder Rule = "nonmonotonic-send"
	// LateOffset is a record that lies before one that was acknowledged or read before it was sent.
	LateOffset Rule = "late-offset"
	// PollOrder is a session that read an offset that is not above the one it read last.
	PollOrder Rule = "nonmonotonic-poll"
	// PollSkip is a session that passed over a record.
	PollSkip Rule = "poll-skip"
	// ScanSkip is a scan that lacks a record between its start and its end.
	ScanSkip Rule = "scan-skip"
	// ScanShort is a scan that ends before a record that was acknowledged before the scan began.
	ScanShort Rule = "scan-short"
	// AbortedRead is a record that was read although it was refused or its transaction was aborted.
	AbortedRead Rule = "aborted-read"
	// UncommittedRead is a record that was read before anybody asked for its transaction to be committed.
	UncommittedRead Rule = "uncommitted-read"
	// TornTxn is a transaction with an unknown outcome of which some was read, and some was passed over.
	TornTxn Rule = "torn-transaction"
	// Cycle is transactions that have read each other's records.
	Cycle Rule = "write-read-cycle"
	// GroupSkip is a record below what a group has committed that none of its members has read.
	GroupSkip Rule = "group-skip"
	// NotLinearizable is a partition, a group's offset or a stream that does not behave as if it stood in one place.
	NotLinearizable Rule = "not-linearizable"
)

// A Violation is evidence that a rule is broken.
type Violation struct {
	Rule      Rule
	Partition history.Partition // empty where it is of none
	Text      string
	Ops       []history.Op // what shows it; of what they read only what matters
}

func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", v.Rule, v.Partition, v.Text)
	for _, op := range v.Ops {
		line, err := json.Marshal(op)
		if err != nil {
			line = fmt.Appendf(nil, "operation %d: %v", op.Index, err)
		}
		fmt.Fprintf(&b, "\n    %s", line)
	}
	return b.String()
}

// most is how many violations of one rule are told: a log that has lost its tail breaks it thousands of times.
const most = 20

// findings collects violations.
type findings struct {
	all   []Violation
	count map[Rule]int
}

// add takes a violation. Reads and sends of the ops that are in none of the partition's offsets from lo to hi are left
// out of it.
func (f *findings) add(rule Rule, p history.Partition, lo, hi int64, ops []*history.Op, format string, args ...any) {
	if f.count[rule]++; f.count[rule] > most {
		return
	}
	v := Violation{Rule: rule, Partition: p, Text: fmt.Sprintf(format, args...)}
	for i, op := range ops {
		if op != nil && !slices.Contains(ops[:i], op) {
			v.Ops = append(v.Ops, excerpt(*op, p, lo, hi))
		}
	}
	f.all = append(f.all, v)
}

// excerpt is an op with little of what it read.
func excerpt(op history.Op, p history.Partition, lo, hi int64) history.Op {
	const around = 2
	var reads []history.Read
	for _, r := range op.Reads {
		if r.Partition == p && r.Offset >= lo-around && r.Offset <= hi+around {
			reads = append(reads, r)
		}
	}
	var sends []history.Sent
	for _, s := range op.Sends {
		if p == "" || s.Partition == p {
			sends = append(sends, s)
		}
	}
	if p != "" {
		op.Reads = reads
	}
	op.Sends = sends
	return op
}

// told returns the violations, with the number of those that were left out.
func (f *findings) told() []Violation {
	for rule, n := range f.count {
		if n > most {
			f.all = append(f.all, Violation{Rule: rule, Text: fmt.Sprintf("and %d more", n-most)})
		}
	}
	return f.all
}
