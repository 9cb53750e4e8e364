package mysql

import (
	"github.com/daybook-data/daybook/pipeline"
)

// Bounds of one Emit. The first that is reached sends the batch off; so does a
// moment in which the server has nothing more to send.
const (
	batchRecords = 1000
	batchBytes   = 256 << 10
	arenaBytes   = 512 << 10
)

// batch collects records for one Emit. The bytes of keys and values come out of an
// arena that is never written twice, for the records live on behind Emit.
type batch struct {
	records []pipeline.Record
	arena   []byte
	bytes   int
	// The positions, one behind the other; they become one string.
	positions []byte
	ends      []int
}

// reserve makes room for about n more bytes, so that what is being written rarely
// has to move.
func (b *batch) reserve(n int) {
	if cap(b.arena)-len(b.arena) < n {
		b.arena = make([]byte, 0, max(arenaBytes, n))
	}
}

// add appends a record whose key and value are parts of the arena. The caller has
// appended its position to b.positions.
func (b *batch) add(key, value []byte, table string, time int64) {
	if b.records == nil {
		b.records = make([]pipeline.Record, 0, batchRecords+8)
	}
	b.records = append(b.records, pipeline.Record{Key: key, Value: value, Table: table, Time: time})
	b.ends = append(b.ends, len(b.positions))
	b.bytes += len(key) + len(value)
}

func (b *batch) full() bool { return len(b.records) >= batchRecords || b.bytes >= batchBytes }

// ripe reports whether the end of a transaction is a good moment to send it off:
// rather there than in the middle of the next one.
func (b *batch) ripe() bool { return len(b.records) >= batchRecords/2 || b.bytes >= batchBytes/2 }

// take returns the records with their positions and empties the batch.
func (b *batch) take() []pipeline.Record {
	all := string(b.positions)
	from := 0
	for i, end := range b.ends {
		b.records[i].Position = all[from:end]
		from = end
	}
	records := b.records
	b.records, b.bytes = nil, 0
	b.positions, b.ends = b.positions[:0], b.ends[:0]
	return records
}
