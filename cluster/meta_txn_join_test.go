package cluster

import (
	"errors"
	"testing"
)

func join(partitions []int32, groups ...string) *TxnJoin {
	j := &TxnJoin{ID: "x", ProducerID: 7, Groups: groups, NowMillis: 5}
	for _, p := range partitions {
		j.Partitions = append(j.Partitions, StreamPartition{Partition: p})
	}
	return j
}

func TestPartitionsAndGroupsJoinTheProducersTransaction(t *testing.T) {
	m := newMeta()
	must(t, m, command{PutTransaction: &putTransaction{Transaction: Transaction{ID: "x", ProducerID: 7, State: TxnEmpty}}})
	asked := join([]int32{1})
	asked.Known = true
	if r := run(t, m, command{JoinTransaction: asked})[0]; !errors.Is(r.err, ErrTransactionState) {
		t.Errorf("asked before it began: %v, want ErrTransactionState", r.err)
	}
	must(t, m, command{JoinTransaction: join([]int32{1})})
	must(t, m, command{JoinTransaction: join([]int32{2, 1}, "g")})
	x, _ := m.Transaction("x")
	if x.State != TxnOngoing || x.StartedMillis != 5 || len(x.Partitions) != 2 || len(x.Groups) != 1 || x.Revision != 3 {
		t.Errorf("the transaction is %+v", x)
	}
	for _, again := range []*TxnJoin{join([]int32{2}), asked} { // nothing new
		if r := run(t, m, command{JoinTransaction: again})[0]; r.err != nil || r.value.(*Transaction).Revision != 3 {
			t.Errorf("again: %+v", r)
		}
	}
}

func TestNothingJoinsATransactionThatIsNotTheProducers(t *testing.T) {
	m := newMeta()
	must(t, m, command{PutTransaction: &putTransaction{Transaction: Transaction{ID: "x", ProducerID: 7, Epoch: 1, State: TxnPrepareCommit}}})
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
		if r := run(t, m, command{JoinTransaction: j})[0]; !errors.Is(r.err, c.want) {
			t.Errorf("%s: %v, want %v", name, r.err, c.want)
		}
	}
}
