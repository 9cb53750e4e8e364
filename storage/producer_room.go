package storage

import (
	"cmp"
	"slices"
)

// maxProducers is how many idempotent producers of partitions a journal remembers. What it remembers goes into the index of
// each segment, and whoever makes up a producer id for each batch would make all of that as large as the log.
const maxProducers = 1 << 16

// makeRoom forgets producers if there are as many as there may be: a quarter of those without an open transaction, first
// those that never had one, then those that are idle for longest. Nothing is lost by it but that a batch which one of them
// sends again, after 16,384 others, is stored again.
func (t *tail) makeRoom() {
	if len(t.producers) < maxProducers {
		return
	}
	idle := make([]producerKey, 0, len(t.producers))
	for k, p := range t.producers {
		if p.txn < 0 {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(x, y producerKey) int {
		p, q := t.producers[x], t.producers[y]
		return cmp.Or(compareBool(p.ended != 0, q.ended != 0), cmp.Compare(p.stamp, q.stamp), cmp.Compare(x.id, y.id), cmp.Compare(x.partition, y.partition))
	})
	for _, k := range idle[:min(len(idle), maxProducers/4)] {
		delete(t.producers, k)
	}
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}
