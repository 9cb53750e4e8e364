package metadata

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

func join(partitions []int32, groups ...string) *TxnJoin {
	j := &TxnJoin{ID: "x", ProducerID: 7, Groups: groups, NowMillis: 5}
	for _, p := range partitions {
		j.Partitions = append(j.Partitions, StreamPartition{Partition: p})
	}
	return j
}

func TestPartitionsAndGroupsJoinTheProducersTransaction(t *testing.T) {
	m := New()
	must(t, m, Command{PutTransaction: &PutTransaction{Transaction: Transaction{ID: "x", ProducerID: 7, State: TxnEmpty}}})
	asked := join([]int32{1})
	asked.Known = true
	if r := run(t, m, Command{JoinTransaction: asked})[0]; !errors.Is(r.Err, ErrTransactionState) {
		t.Errorf("asked before it began: %v, want ErrTransactionState", r.Err)
	}
	must(t, m, Command{JoinTransaction: join([]int32{1})})
	must(t, m, Command{JoinTransaction: join([]int32{2, 1}, "g")})
	x, _ := m.Transaction("x")
	if x.State != TxnOngoing || x.StartedMillis != 5 || len(x.Partitions) != 2 || len(x.Groups) != 1 || x.Revision != 3 {
		t.Errorf("the transaction is %+v", x)
	}
	for _, again := range []*TxnJoin{join([]int32{2}), asked} { // nothing new
		if r := run(t, m, Command{JoinTransaction: again})[0]; r.Err != nil || r.Value.(*Transaction).Revision != 3 {
			t.Errorf("again: %+v", r)
		}
	}
}

func TestNothingJoinsATransactionThatIsNotTheProducers(t *testing.T) {
	m := New()
	must(t, m, Command{PutTransaction: &PutTransaction{Transaction: Transaction{ID: "x", ProducerID: 7, Epoch: 1, State: TxnPrepareCommit}}})
	for name, c := range map[string]struct {
		change func(*TxnJoin)
		want   error
	}{
		"unknown id":     {func(j *TxnJoin) { j.ID = "y" }, ErrUnknownTransaction},
		"other producer": {func(j *TxnJoin) { j.ProducerID = 8 }, ErrUnknownTransaction},
		"older epoch":    {func(j *TxnJoin) { j.Epoch = 0 }, ErrProducerFenced},
		"being ended":    {func(j *TxnJoin) { j.Epoch = 1 }, ErrConflict},
	} {
		j := join([]int32{1})
		c.change(j)
		if r := run(t, m, Command{JoinTransaction: j})[0]; !errors.Is(r.Err, c.want) {
			t.Errorf("%s: %v, want %v", name, r.Err, c.want)
		}
	}
}

// What a coordinator has judged by the members it knew counts only in its own term: after
// an election the members may be others.
func TestACoordinatorsCommitsEndWithItsTerm(t *testing.T) {
	m, s := filled(t)
	offset := func(to int64) []GroupOffset { return []GroupOffset{{Stream: s.ID, Partition: 1, Offset: to}} }
	apply := func(c Command, term uint64) error {
		t.Helper()
		data, err := EncodeEntry(nil, []Command{c})
		if err != nil {
			t.Fatal(err)
		}
		return m.Apply(&raft.Log{Index: 100, Term: term, Data: data}).([]Result)[0].Err
	}
	commit := func(to int64) Command {
		return Command{CommitOffsets: &CommitOffsets{Group: "g", Offsets: offset(to), Term: 4}}
	}
	if err := apply(commit(20), 4); err != nil {
		t.Errorf("in its term: %v", err)
	}
	if err := apply(commit(21), 5); !errors.Is(err, ErrNotCoordinator) {
		t.Errorf("a commit in the next term: %v, want ErrNotCoordinator", err)
	}
	x, _ := m.Transaction("x")
	pend := Command{PendTxnOffsets: &PendTxnOffsets{TransactionalID: "x", ProducerID: x.ProducerID, Epoch: x.Epoch, Group: "g", Offsets: offset(22), Coordinator: 4}}
	if err := apply(pend, 5); !errors.Is(err, ErrNotCoordinator) {
		t.Errorf("offsets of a transaction in the next term: %v, want ErrNotCoordinator", err)
	}
	if o, ok, unstable := m.GroupOffset("g", StreamPartition{Stream: s.ID, Partition: 1}); !ok || o.Offset != 20 || unstable {
		t.Errorf("the offset is %+v, unstable %v; want 20", o, unstable)
	}
}
