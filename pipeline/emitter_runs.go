package pipeline

import (
	"context"
	"time"
)

// longRun is how many bytes of one table in a row are worth batches of their own. Below
// it a reader of one table is spared little, and what ends a batch costs more.
const longRun = 16 << 10

// apartShare bounds what it costs to keep tables apart: for each moment waited, this many
// are not.
const apartShare = 3

// runs finds the places where a batch should end, so that a reader of one table can pass
// over the batches of others: where many records of one table in a row begin or end. In
// between, tables share batches. Each partition is looked at by itself. The zero value is
// ready; it is not safe for concurrent use.
type runs struct {
	last   []run // by partition
	waited time.Duration
	ended  time.Time // when that was over
}

// run is what a partition was given last since batches ended: records of one table.
type run struct {
	table string
	bytes int64
	mixed bool // others come before them in the same batch
}

// next returns how many of the records may be appended before it is asked again, one at
// least, and their size, which does not outgrow maxSpan by more than a record. Before they
// are, batches must end if apart says so, which it does only with may. Their partitions
// are set.
func (r *runs) next(parts *partitioner, records []Record, may bool) (n int, bytes int64, apart bool) {
	if r.last == nil {
		r.last = make([]run, parts.n)
	}
	for n < len(records) && bytes < maxSpan {
		k := &records[n]
		k.Partition = parts.choose(k)
		at := &r.last[k.Partition]
		if may && at.ends(k.Table) {
			if n > 0 {
				return n, bytes, apart
			}
			apart = true
			clear(r.last)
		}
		size := k.size()
		at.add(k.Table, size)
		bytes += size
		n++
	}
	return n, bytes, apart
}

// ends says whether the batch should end before a record of the table: a long run is
// over, or has become one since it began in a batch of others.
func (r *run) ends(table string) bool {
	return r.bytes >= longRun && (r.table != table || r.mixed)
}

func (r *run) add(table string, size int64) {
	if r.table != table {
		r.mixed = r.mixed || r.bytes > 0
		r.table, r.bytes = table, 0
	}
	r.bytes += size
}

// affordable says that batches may end at now without slowing the source down too much.
func (r *runs) affordable(now time.Time) bool {
	return now.Sub(r.ended) >= apartShare*r.waited
}

// end ends all batches by waiting until they are acknowledged: the client puts records into
// a batch until it is sent, and has no other way to end one.
func (r *runs) end(ctx context.Context, flush func(context.Context) error) error {
	began := time.Now()
	err := flush(ctx)
	r.ended = time.Now()
	r.waited = r.ended.Sub(began)
	return err
}
