package storage_test

import (
	"testing"

	"github.com/daybook-data/daybook/storage"
)

// Whoever makes up a producer id for each batch makes neither the journal's memory nor its files grow without end, and does
// not make it forget a transaction.
func TestProducersThatAreMadeUpAreForgotten(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), storage.Options{})
	l.put(1, batch(batchSpec{values: []string{"open"}, producer: 1, txn: true}))
	last := batchSpec{values: []string{"last"}, producer: 2}
	const rounds, each = 68, 1000 // more than are remembered
	for round := range rounds {
		made := make([][]byte, each)
		for i := range made {
			made[i] = batch(batchSpec{values: []string{"x"}, producer: int64(10 + round*each + i)})
		}
		l.put(0, made...)
		if round == rounds-2 {
			l.put(1, batch(last))
		}
	}
	for round := range 2 {
		if got := l.put(1, batch(last))[0]; got != 1 {
			t.Errorf("a batch sent again got offset %d, want the 1 that it had", got)
		}
		if stable := l.LastStable(1); stable != 0 {
			t.Errorf("stable to %d, want 0: a transaction is open", stable)
		}
		if got := l.put(1, batch(batchSpec{values: []string{"open"}, producer: 1, txn: true}))[0]; got != 0 {
			t.Errorf("a batch of the open transaction sent again got offset %d, want 0", got)
		}
		if got := l.put(0, batch(batchSpec{values: []string{"x"}, producer: int64(10 + round)}))[0]; got < rounds*each {
			t.Errorf("the producer that is idle for longest is remembered: got offset %d", got)
		}
		must(t, l.Close())
		l = openLog(t, l.dir, l.opts)
	}
}
