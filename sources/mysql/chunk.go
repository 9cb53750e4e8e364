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

func (c *chunk) clear() {
	for i := range c.rows {
		c.rows[i].row = nil
	}
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
		return s.r.contain(err)
	}
	if t == nil { // there is no such table, and nothing that the stream has yet to read made one
		s.forget(n)
		return nil
	}
	codec, err := s.r.reg.newCodec(s.r.ctx, t)
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
		return s.r.contain(unreadable(codec, fmt.Errorf("reading rows %d and on of %s: %w", s.rows+1, c.name, err)))
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

// unreadable makes an error that only concerns the table a *tableError.
func unreadable(c *rowCodec, err error) error {
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Number {
	case 1142, 1143: // no right to read the table, or a column
		return &tableError{c.name, &pipeline.StopError{Code: "access-denied", Where: c.full, Err: err,
			Fix: fmt.Sprintf("GRANT SELECT ON %s.%s to the source's account and restart the pipeline, or take the table out with \"!%s\" in `tables`", quoteName(c.table.DB), quoteName(c.table.Name), c.full)}}
	case 126, 1034, 1194, 1195, 1712, 1812, 1814, 1877, 1932: // the table, an index or its file is damaged or missing
		return &tableError{c.name, &pipeline.StopError{Code: "table-damaged", Where: c.full, Err: err,
			Fix: fmt.Sprintf("repair the table and restart the pipeline, or take it out with \"!%s\" in `tables`", c.full)}}
	}
	return err
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

// selectChunk reads rows behind s.last into c.
func (s *snapshot) selectChunk(c *chunk, t *table) error {
	ctx, cancel := context.WithCancel(s.r.ctx)
	defer cancel()
	conn, err := s.r.srv.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.settings(ctx, conn); err != nil {
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

// settings are those of the session that matter for a chunk.
func (s *snapshot) settings(ctx context.Context, conn *sql.Conn) error {
	timeLimit := "max_execution_time"
	if s.r.srv.flavor == flavorMariaDB {
		timeLimit = "max_statement_time"
	}
	// view says READ COMMITTED where it needs that. A server's default of READ
	// UNCOMMITTED would show what may yet be rolled back.
	if _, err := conn.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d, innodb_lock_wait_timeout = %d, %s = 0",
		lockPatience/time.Second, lockPatience/time.Second, timeLimit))
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
		if err == nil && !s.r.native {
			err = s.holds(ctx, c.high)
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

// holds makes sure, after the stream has moved to another server, that its log up to a
// place holds all that was handled before: places of the former server say nothing here.
// Once that is so, it stays so.
func (s *snapshot) holds(ctx context.Context, p place) error {
	set, err := s.r.srv.mariaPosition(ctx, p)
	if err == nil && !set.contains(s.r.done) {
		err = errNotYet
	}
	s.r.native = err == nil
	return err
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
			return n, size, s.r.undecodable(c.codec, err)
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
