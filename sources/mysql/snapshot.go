package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	driver "github.com/go-sql-driver/mysql"
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

// chunk is what one SELECT returned.
type chunk struct {
	name  string // database.table
	high  place
	rows  []chunkRow
	index map[string]int // by key
	last  []string
	final bool // the table ends here
	codec *rowCodec
}

type chunkRow struct {
	key, row []byte // row is nil when the stream has overtaken it
}

// Bounds of a chunk.
const (
	chunkBytes   = 16 << 20
	lockPatience = 5 * time.Second // for a lock that DDL or a writer holds; the stream waits meanwhile
	retryAfter   = time.Second
	retrySoon    = 5 * time.Millisecond // where the server is just about to be there
)

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

func (c *chunk) clear() {
	for i := range c.rows {
		c.rows[i].row = nil
	}
}

// emptied is called when the rows of a table have gone without being logged.
func (s *snapshot) emptied(n tableName) {
	if s.chunk != nil && s.current() == n {
		s.chunk.clear()
	}
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
	if s.chunk == nil || s.r.at.before(s.chunk.high) {
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

// read takes the next chunk. Locks that others hold put it off.
func (s *snapshot) read() error {
	n := s.current()
	t, err := s.definition(n)
	if errors.Is(err, errNotYet) {
		s.retry = time.Now().Add(retryAfter)
		return nil
	}
	if err != nil {
		return err
	}
	if t == nil { // there is no such table, and nothing that the stream has yet to read made one
		s.forget(n)
		return nil
	}
	codec, err := newRowCodec(s.r.ctx, s.r.srv, t, s.r.cfg.ZeroDate, s.r.reg.source)
	if err != nil {
		return err
	}
	c := &chunk{name: t.full(), index: map[string]int{}, codec: codec}
	err = s.selectChunk(c, t)
	if putsOff(err) {
		s.r.log.Debug("a chunk is put off", slog.String("table", c.name), slog.Any("error", err))
		s.retry = time.Now().Add(retryAfter)
		if errors.Is(err, errNotYet) {
			s.retry = time.Now().Add(retrySoon)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading rows %d and on of %s: %w", s.rows+1, c.name, err)
	}
	s.chunk = c
	s.r.see.chunk(s, c)
	return nil
}

// errNotYet says that the server is not as far as the stream, or that the table's
// definition is ahead of the stream's.
var errNotYet = errors.New("not yet")

// putsOff reports errors after which the chunk is simply tried again later.
func putsOff(err error) bool {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		switch e.Number {
		case 1205, 1213, // lock wait, deadlock
			1412, 1615, // the definition changed meanwhile
			1146, 1054, 1049, // table, column or database unknown: DDL is ahead of the stream
			1969, 3024: // statement timed out
			return true
		}
	}
	return errors.Is(err, errNotYet)
}

// definition returns the definition by which to select: the stream's. The columns
// are named, so one that is newer is not missed for long and one that has gone puts
// the chunk off until the stream knows.
func (s *snapshot) definition(n tableName) (*table, error) {
	t := s.r.reg.tables[n]
	if t == nil {
		var err error
		if t, err = s.r.settle(n); err != nil || t == nil {
			return nil, err
		}
	}
	return t, s.r.reg.check(t)
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

// selectChunk reads rows behind s.last into c.
func (s *snapshot) selectChunk(c *chunk, t *table) error {
	ctx, cancel := context.WithCancel(s.r.ctx)
	defer cancel()
	conn, err := s.r.srv.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d, innodb_lock_wait_timeout = %d",
		lockPatience/time.Second, lockPatience/time.Second)); err != nil {
		return err
	}
	suffix, done, err := s.view(ctx, conn, c)
	if err != nil {
		return err
	}
	defer done()
	rows, err := conn.QueryContext(ctx, chunkQuery(t, s.last, s.limit)+suffix)
	if err != nil {
		return err
	}
	n, size, err := s.collect(c, t, rows)
	if err != nil {
		return err
	}
	s.adapt(n, size)
	if s.r.srv.flavor == flavorMariaDB {
		return nil // the view said where it stands
	}
	end, err := s.r.srv.end(ctx)
	c.high = end.place
	return err
}

// adapt keeps chunks near chunkBytes where rows are long.
func (s *snapshot) adapt(rows, size int) {
	if rows == 0 {
		return
	}
	s.limit = max(1, min(s.r.cfg.ChunkRows, chunkBytes/max(1, size/rows)))
}

// view makes sure that the SELECT to come sees all the stream has handled: point (a)
// above. It returns what the SELECT must end with, and what to do after it.
func (s *snapshot) view(ctx context.Context, conn *sql.Conn, c *chunk) (suffix string, done func(), err error) {
	nothing := func() {}
	switch {
	case s.r.srv.flavor == flavorMariaDB:
		if _, err := conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
			return "", nothing, err
		}
		done = func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }
		if c.high, err = viewPlace(ctx, conn); err == nil && c.high.before(s.r.reached) {
			err = errNotYet
		}
		if err != nil {
			done()
			return "", nothing, err
		}
		return "", done, nil
	case s.r.done != nil:
		set, uuid, err := s.r.srv.executed(ctx)
		if err != nil {
			return "", nothing, err
		}
		if uuid != s.r.srv.uuid {
			return "", nothing, fmt.Errorf("the address leads to server %s now, the stream comes from %s", uuid, s.r.srv.uuid)
		}
		if !set.contains(s.r.done) {
			return "", nothing, errNotYet
		}
		return "", nothing, nil
	}
	_, err = conn.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	return " FOR SHARE", nothing, err
}

// viewPlace returns where in the log the consistent view of this connection stands.
func viewPlace(ctx context.Context, conn *sql.Conn) (place, error) {
	var p place
	rows, err := conn.QueryContext(ctx, "SHOW STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')")
	if err != nil {
		return p, err
	}
	err = scanAll(rows, func() error {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		if strings.EqualFold(name, "Binlog_snapshot_file") {
			p.File = value
			return nil
		}
		var err error
		p.Pos, err = strconv.ParseUint(value, 10, 64)
		return err
	})
	if err == nil && p.File == "" {
		err = &pipeline.StopError{Code: "no-binlog", Where: "Binlog_snapshot_file", Err: errors.New("the server does not say where a consistent view stands in its log"),
			Fix: "start it with log_bin"}
	}
	return p, err
}

// collect reads the rows of a chunk, until it is large enough.
func (s *snapshot) collect(c *chunk, t *table, rows *sql.Rows) (n, size int, err error) {
	defer rows.Close()
	names, err := rows.Columns() // those of the table, then what chunkQuery adds
	if err != nil {
		return 0, 0, err
	}
	raw := make([]sql.RawBytes, len(names))
	dest := make([]any, len(names))
	values := make([][]byte, len(names))
	for i := range raw {
		dest[i] = &raw[i]
	}
	var key keyValues
	var arena []byte
	c.final = true
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return n, size, err
		}
		for i := range raw {
			values[i] = raw[i]
		}
		start := len(arena)
		if arena, err = c.codec.textRow(arena, values); err != nil {
			return n, size, err
		}
		end := len(arena)
		arena = c.codec.key(arena, arena)
		row := chunkRow{key: arena[end:len(arena):len(arena)], row: arena[start:end:end]}
		if _, emitted := s.seen[c.name][string(row.key)]; emitted {
			row.row = nil
		}
		c.index[string(row.key)] = len(c.rows)
		c.rows = append(c.rows, row)
		key.keep(t, values)
		n++
		size += len(arena) - start
		if cap(arena)-len(arena) < 8<<10 {
			arena = make([]byte, 0, 1<<20)
		}
		if n == s.limit || size > 2*chunkBytes { // the latter where rows are far longer than those before
			c.final = false
			break
		}
	}
	if n > 0 {
		c.last = key.literals(t)
	}
	return n, size, rows.Err()
}
