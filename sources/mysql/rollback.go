package mysql

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"
)

// A transaction's rows may be followed in the log by a ROLLBACK of all of them, or of
// those behind a savepoint: where it made or dropped a temporary table (MariaDB), or
// changed tables without transactions in one statement with others. Rows of tables
// without transactions stand; the others never were.
//
// So nothing of a transaction is emitted before its end, unless it is large: then it is
// emitted as it comes, and a rollback has its tables read anew. Which of the two it is
// depends on the transaction alone, so that each reading of it takes the same way.

// heldBack is what the transaction has in the batch.
type heldBack struct {
	records int // in all, also when they have been emitted
	bytes   int
	first   int // of the batch's records the first that is the transaction's
	// savepoints holds, by name, how many records there were.
	savepoints map[string]savepoint
}

type savepoint struct{ records, prepared int }

// large reports whether the transaction is emitted before its end.
func (t *heldBack) large() bool { return t.records > batchRecords || t.bytes > batchBytes }

// collected is called with each record of a transaction that is to be added to the batch.
func (t *heldBack) collected(b *batch, size int) {
	if t.records == 0 {
		t.first = len(b.records)
	}
	t.records++
	t.bytes += size
}

// emitFull hands on what was collected if that is enough, inside a transaction too.
func (r *reader) emitFull() error {
	if !r.batch.full() || r.tx.held.records > 0 && !r.tx.held.large() {
		return nil
	}
	return r.emit()
}

// savepoint handles SAVEPOINT name.
func (r *reader) savepoint(c *cursor) {
	c.i++
	name, _ := c.name()
	if r.tx.held.savepoints == nil {
		r.tx.held.savepoints = map[string]savepoint{}
	}
	s := savepoint{records: r.tx.held.records}
	if r.tx.xa != nil {
		s.prepared = len(r.tx.xa.rows)
	}
	r.tx.held.savepoints[strings.ToLower(name)] = s
}

// rollbackTo handles ROLLBACK TO name.
func (r *reader) rollbackTo(h *replication.EventHeader, c *cursor) error {
	c.i++
	c.accept("WORK")
	if !c.accept("TO") {
		return r.rollback(h, savepoint{})
	}
	c.accept("SAVEPOINT")
	name, _ := c.name()
	return r.rollback(h, r.tx.held.savepoints[strings.ToLower(name)]) // none: it was set before the first row
}

// rollback takes back the rows of the transaction from the savepoint on.
func (r *reader) rollback(h *replication.EventHeader, s savepoint) error {
	if r.tx.xa != nil {
		r.tx.xa.rows = r.tx.xa.rows[:min(s.prepared, len(r.tx.xa.rows))]
	}
	t := &r.tx.held
	if r.shadow != nil || s.records >= t.records {
		return nil
	}
	stands, err := r.withoutTransactions()
	if err != nil {
		return err
	}
	if t.large() {
		for _, full := range slices.Sorted(maps.Keys(r.tx.rows)) {
			if n, known := r.reg.named(full); known && !stands[full] {
				r.log.Info("rows of a large transaction were rolled back: the table is read anew", slog.String("table", full), slog.String("at", r.at.String()))
				r.readAnew(h, n)
			}
		}
		return nil
	}
	r.batch.drop(t.first+s.records, func(table string) bool { return stands[table] })
	t.records = len(r.batch.records) - t.first
	if r.snap != nil {
		r.snap.recall()
	}
	return nil
}

// withoutTransactions asks which tables of the transaction have none.
func (r *reader) withoutTransactions() (map[string]bool, error) {
	stands := map[string]bool{}
	for full := range r.tx.rows {
		n, known := r.reg.named(full)
		if !known {
			continue
		}
		rows, err := r.srv.db.QueryContext(r.ctx, `SELECT 1 FROM information_schema.TABLES t JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
			WHERE t.TABLE_SCHEMA = ? AND t.TABLE_NAME = ? AND e.TRANSACTIONS = 'NO'`, n.db, n.table)
		if err == nil {
			err = scanAll(rows, func() error { stands[full] = true; return nil })
		}
		if err != nil {
			return nil, fmt.Errorf("asking for the engine of %s: %w", full, err)
		}
	}
	return stands, nil
}

// named returns the table whose definition has the name database.table.
func (r *registry) named(full string) (tableName, bool) {
	for n, t := range r.tables {
		if t != nil && t.full() == full {
			return n, true
		}
	}
	return tableName{}, false
}

// drop takes records out from an index on, but for those of tables to keep.
func (b *batch) drop(from int, keep func(table string) bool) {
	records, ends, positions := b.records[from:], b.ends[from:], b.positions
	start := 0
	if from > 0 {
		start = b.ends[from-1]
	}
	b.records, b.ends, b.positions = b.records[:from], slices.Clone(b.ends[:from]), slices.Clone(positions[:start])
	for i, rec := range records {
		b.bytes -= len(rec.Key) + len(rec.Value)
		if keep(rec.Table) {
			b.positions = append(b.positions, positions[start:ends[i]]...)
			b.add(rec.Key, rec.Value, rec.Table, rec.Time)
		}
		start = ends[i]
	}
}
