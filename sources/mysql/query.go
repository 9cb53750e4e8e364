package mysql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// statement is a statement from the log, with what decides how to read it.
type statement struct {
	db        string // the default database
	sql       string
	sqlMode   uint64
	collation uint64 // of the client that sent it; 0 where the log does not say
	utf8      bool   // the text is UTF-8, or ASCII
}

// parseQuery decodes the body of a query event.
func parseQuery(kind replication.EventType, b []byte) (statement, error) {
	r := byteReader{b: b}
	r.bytes(8)
	dbLen := int(r.uint(1))
	r.uint(2)
	vars := r.bytes(int(r.uint(2)))
	s := statement{db: string(r.bytes(dbLen))}
	r.uint(1)
	if r.err != nil {
		return s, fmt.Errorf("decoding a statement: %w", r.err)
	}
	text := r.b
	if kind == replication.MARIADB_QUERY_COMPRESSED_EVENT {
		var err error
		if text, err = mysql.DecompressMariadbData(text); err != nil {
			return s, fmt.Errorf("decompressing a statement: %w", err)
		}
	}
	s.sql = string(text)
	s.collation = s.readVars(vars)
	s.utf8 = s.collation == 0 || utf8Collation(s.collation) || isASCII(s.sql)
	return s, nil
}

// readVars finds sql_mode and the client's character set among the status
// variables, which have no lengths of their own: what is not known ends the search.
func (s *statement) readVars(vars []byte) (charset uint64) {
	r := byteReader{b: vars}
	for len(r.b) > 0 && r.err == nil {
		switch r.uint(1) {
		case 0: // flags
			r.bytes(4)
		case 1:
			s.sqlMode = r.uint(8)
		case 3: // auto_increment
			r.bytes(4)
		case 4:
			charset = r.uint(2)
			return charset
		case 6: // catalog
			r.bytes(int(r.uint(1)))
		default:
			return charset
		}
	}
	return charset
}

// utf8Collation reports whether a collation id belongs to utf8mb3, utf8mb4 or ascii.
func utf8Collation(id uint64) bool {
	switch {
	case id == 11 || id == 65, id == 33 || id == 83 || id == 76, id == 45 || id == 46:
		return true
	case id >= 192 && id <= 247, id >= 255 && id <= 323:
		return true
	}
	return id >= 2048 // MariaDB's uca1400 of utf8mb3 and utf8mb4
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// query handles a statement: the limits of transactions, DDL, and changes logged as
// statements.
func (r *reader) query(h *replication.EventHeader, b []byte) error {
	s, err := parseQuery(h.EventType, b)
	if err != nil {
		return fmt.Errorf("at %s: %w", r.at, err)
	}
	if err := r.srv.translate(r.ctx, &s); err != nil {
		return fmt.Errorf("reading a statement at %s: %w", r.at, err)
	}
	switch s.sql {
	case "BEGIN":
		if !r.tx.hasGTID && len(r.tx.id) == 0 {
			r.begin(h, gtid{}, false) // a log of before MySQL 5.7: nothing comes before BEGIN
		}
		r.tx.open = true
		return nil
	case "COMMIT":
		return r.commit(h)
	case "ROLLBACK":
		if err := r.rollback(h, savepoint{}); err != nil {
			return err
		}
		return r.commit(h)
	}
	c := cursor{}
	var complete bool
	c.tokens, complete = lex(s.sql, r.srv.dialect(s.sqlMode))
	if c.peek(0).is("XA") {
		return r.xaStatement(h, &c)
	}
	if !r.tx.hasGTID && len(r.tx.id) == 0 {
		r.begin(h, gtid{}, false)
	}
	if err := r.statement(h, s, &c, complete); err != nil {
		return err
	}
	if r.tx.open { // CREATE TABLE ... SELECT: its rows follow
		return nil
	}
	return r.commit(h)
}

// statement handles what is neither the limit of a transaction nor XA.
func (r *reader) statement(h *replication.EventHeader, s statement, c *cursor, complete bool) error {
	if c.accept("SET", "STATEMENT") { // MariaDB: SET STATEMENT variable=value FOR statement
		for !c.end() && !c.accept("FOR") {
			c.i++
		}
	}
	first := strings.ToUpper(c.peek(0).text)
	switch first {
	case "SAVEPOINT":
		r.savepoint(c)
		return nil
	case "ROLLBACK":
		return r.rollbackTo(h, c)
	case "RELEASE":
		return nil
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "CALL", "DO", "IMPORT":
		return r.loggedAsStatement(s, c)
	case "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE":
		if r.shadow != nil {
			r.shadow.ddl(r, s, c, complete)
			return nil
		}
		r.see.statements.Add(1)
		all := *c
		r.ddl(h, s, c, complete)
		return r.reconsider(h, s, &all)
	}
	return nil
}

// loggedAsStatement stops where rows of a captured table may have changed without
// being logged. It stops the source and not the tables that the statement names: by
// triggers and foreign keys it may have changed any.
func (r *reader) loggedAsStatement(s statement, c *cursor) error {
	if r.shadow != nil {
		return nil
	}
	name, ok := r.mentioned(s, c)
	if !ok {
		return nil
	}
	return &pipeline.StopError{Code: "statement-binlog", Where: fmt.Sprintf("%s at %s", name, r.at),
		Err: errors.New("a change was logged as a statement, without its rows"),
		Fix: "SET GLOBAL binlog_format = ROW (and find the session that sets it), then " + anew}
}

// mentioned returns a captured table that a statement names anywhere.
func (r *reader) mentioned(s statement, c *cursor) (tableName, bool) {
	for n := range r.names(s, c) {
		if _, known := r.reg.tables[n]; known && r.reg.captured(n) {
			return n, true
		}
	}
	return tableName{}, false
}

// loadQuery handles LOAD DATA logged as a statement.
func (r *reader) loadQuery(b []byte) error {
	f := byteReader{b: b}
	f.bytes(8)
	dbLen := int(f.uint(1))
	f.uint(2)
	varsLen := int(f.uint(2))
	f.bytes(13)
	f.bytes(varsLen)
	s := statement{db: string(f.bytes(dbLen))}
	f.uint(1)
	if f.err != nil {
		return fmt.Errorf("decoding a statement at %s: %w", r.at, f.err)
	}
	s.sql = string(f.b)
	tokens, _ := lex(s.sql, r.srv.dialect(0))
	return r.loggedAsStatement(s, &cursor{tokens: tokens})
}
