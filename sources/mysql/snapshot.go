package mysql

import (
	"strconv"
	"time"
)

// snapshot reads tables in chunks while the stream goes on, without a lock.
//
// A chunk is read between two transactions of the stream, which waits meanwhile.
// Let S be the transactions the stream has handled, R those that the SELECT saw.
//
//	(a) S is in R. On MySQL with GTIDs the chunk waits until @@gtid_executed holds S:
//	    the server adds a transaction there after the engine has committed it, while
//	    the log shows it earlier. Without GTIDs the SELECT is FOR SHARE under READ
//	    COMMITTED: rows of transactions that are logged and not yet committed are
//	    still locked, so it waits for them, row by row. MariaDB says at which place
//	    of the log a consistent view stands; the chunk waits until that is S or later.
//	(b) R is in the log before `high`, the end of the log asked for after the SELECT:
//	    the log is written before the engine commits.
//
// The chunk's rows wait while the stream goes on; each change the stream reads of a
// row in the chunk removes it there. When the stream reaches high, what is left is
// emitted. Such a row was changed by no transaction between S and here, all that R
// saw lies before here, and all of S was seen: it is the row as it stands at this
// place of the stream. Promise 3.
//
// The waiting rows are only in memory; after a crash the chunk is read again.
type snapshot struct {
	r     *reader
	wait  []waiting
	last  []string // see snapshotMark
	rows  int64
	limit int // rows of the next chunk
	retry time.Time

	chunk *chunk // being held until the stream is at chunk.high
	// seen holds, for each table that waits, the keys of rows that the stream has
	// emitted: they need not be read. It spares repeats and nothing depends on it, so
	// it is bounded and does not outlive the process.
	seen     map[string]map[string]struct{}
	seenKeys int
}

// maxSeen bounds the keys in snapshot.seen.
const maxSeen = 1 << 20

func newSnapshot(r *reader, m *snapshotMark) *snapshot {
	s := &snapshot{r: r, wait: m.Wait, last: m.Last, rows: m.Rows, limit: r.cfg.ChunkRows, seen: map[string]map[string]struct{}{}}
	for _, w := range m.Wait {
		s.seen[w.full()] = map[string]struct{}{}
	}
	return s
}

// mark returns how far the snapshot is.
func (s *snapshot) mark() *snapshotMark {
	return &snapshotMark{Wait: s.wait, Last: s.last, Rows: s.rows}
}

// touch is called for each change that the stream emits.
func (s *snapshot) touch(table string, key []byte) {
	if seen := s.seen[table]; seen != nil && key != nil && s.seenKeys < maxSeen {
		if _, known := seen[string(key)]; !known {
			seen[string(key)] = struct{}{}
			s.seenKeys++
		}
	}
	if s.chunk == nil || s.chunk.name != table {
		return
	}
	if key == nil {
		s.chunk.clear()
		return
	}
	if i, ok := s.chunk.index[string(key)]; ok {
		s.chunk.rows[i].row = nil
	}
}

// emptied is called when the rows of a table have gone without being logged.
func (s *snapshot) emptied(n tableName) {
	if s.chunk != nil && s.current() == n {
		s.chunk.clear()
	}
}

// recall is called when changes that touch was called for have been taken back.
func (s *snapshot) recall() {
	s.chunk = nil // it is read again
	for table := range s.seen {
		s.seen[table] = map[string]struct{}{}
	}
	s.seenKeys = 0
}

// forget takes a table out: it is gone, or new and all its rows will be in the log.
func (s *snapshot) forget(n tableName) {
	if len(s.wait) > 0 && s.current() == n {
		s.chunk = nil
	}
	kept := s.wait[:0:0]
	for i, w := range s.wait {
		if s.r.reg.id(w.DB, w.Table) != n {
			kept = append(kept, w)
			continue
		}
		if i == 0 {
			s.last, s.rows = nil, 0
		}
		s.unsee(w.full())
	}
	s.wait = kept
	s.r.moved = true
}

// unsee drops what is remembered of a table.
func (s *snapshot) unsee(table string) {
	s.seenKeys -= len(s.seen[table])
	delete(s.seen, table)
}

func (s *snapshot) current() tableName { return s.r.reg.id(s.wait[0].DB, s.wait[0].Table) }

// add queues a table, from its first row on.
func (s *snapshot) add(n tableName, id string) {
	s.forget(n)
	w := waiting{DB: n.db, Table: n.table, ID: id}
	s.wait = append(s.wait, w)
	s.seen[w.full()] = map[string]struct{}{}
}

// boundary is called between two transactions, and when the stream has nothing to
// read. It takes at most one chunk and emits at most one.
func (s *snapshot) boundary() error {
	if s.chunk == nil {
		if len(s.wait) == 0 {
			return s.finish()
		}
		if time.Now().Before(s.retry) {
			return nil
		}
		if err := s.read(); err != nil {
			return err
		}
	}
	if s.chunk == nil || s.r.here().before(s.chunk.high) {
		return nil
	}
	return s.emitChunk()
}

// idle is called when the stream has nothing to read: then one chunk follows another.
func (s *snapshot) idle() error {
	for s.r.snap == s {
		before := len(s.wait)
		last := s.rows
		if err := s.boundary(); err != nil {
			return err
		}
		if s.rows == last && len(s.wait) == before {
			return nil // it waits for the stream, or for a lock
		}
	}
	return nil
}

// finish ends the snapshot; what stays is the mark that it is over.
func (s *snapshot) finish() error {
	s.r.snap, s.r.snapDone = nil, &snapshotMark{}
	s.r.moved = true
	s.r.see.snapshotOver()
	s.r.log.Info("the snapshot is complete")
	s.r.placed = time.Time{}
	return s.r.emit()
}

// emitChunk emits the rows that the stream has not overtaken.
func (s *snapshot) emitChunk() error {
	c := s.chunk
	r := s.r
	if r.reg.tables[s.current()] != c.codec.table { // the definition changed meanwhile
		s.chunk = nil
		return nil
	}
	beyond := r.beyond // false, but where no place is safe just now
	id := s.wait[0].ID
	now := time.Now()
	r.now = now.UnixMilli()
	lastRow := -1
	if c.final && len(s.wait) == 1 {
		for i := range c.rows {
			if c.rows[i].row != nil {
				lastRow = i
			}
		}
	}
	for i := range c.rows {
		row := c.rows[i]
		if row.row == nil {
			continue
		}
		s.emitRow(c, row, id, now.UnixMicro(), i == lastRow)
		c.rows[i] = chunkRow{} // the batch has a copy
		if r.batch.full() && i < len(c.rows)-1 {
			if err := r.emit(); err != nil {
				return err
			}
		}
	}
	s.chunk = nil
	s.rows += int64(len(c.rows))
	s.last = c.last
	if c.final {
		s.unsee(s.wait[0].full())
		s.wait = s.wait[1:]
		s.last, s.rows = nil, 0
	}
	r.moved, r.beyond = true, beyond
	return r.emit()
}

func (s *snapshot) emitRow(c *chunk, row chunkRow, id string, micros int64, last bool) {
	r := s.r
	r.batch.reserve(len(row.row) + len(row.key) + 1024)
	a := r.batch.arena
	start := len(a)
	a = append(a, `{"before":null,"after":`...)
	a = append(a, row.row...)
	a = append(a, c.codec.head...)
	a = strconv.AppendInt(a, micros/1000, 10)
	if last {
		a = append(a, `,"snapshot":"last"`...)
	} else {
		a = append(a, `,"snapshot":"true"`...)
	}
	a = append(a, `,"server_id":0,"gtid":null,"file":`...)
	a = appendJSONString(a, []byte(r.at.File))
	a = append(a, `,"pos":`...)
	a = strconv.AppendUint(a, r.at.Pos, 10)
	a = append(a, `,"row":0},"op":"r","ts_ms":`...)
	a = strconv.AppendInt(a, r.now, 10)
	a = append(a, '}')
	end := len(a)
	a = append(a, row.key...)
	r.batch.arena = a
	p := append(r.batch.positions, "s:"...)
	p = append(p, id...)
	p = append(p, ':')
	p = append(p, c.name...)
	p = append(p, ':')
	r.batch.positions = append(p, row.key...)
	r.batch.add(a[end:len(a):len(a)], a[start:end:end], c.name, micros)
	r.beyond = true
}
