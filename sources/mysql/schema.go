package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// tableInfo is a table as information_schema lists it.
type tableInfo struct {
	name tableName
	kind string // BASE TABLE, VIEW, SYSTEM VERSIONED, SEQUENCE
	rows uint64 // the server's estimate
}

type tableName struct{ db, table string }

func (n tableName) String() string { return n.db + "." + n.table }

// listTables returns the captured tables that are there now.
func (s *server) listTables(ctx context.Context, sel *selection) ([]tableInfo, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, COALESCE(TABLE_ROWS, 0) FROM information_schema.TABLES
		WHERE TABLE_TYPE <> 'VIEW' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("listing tables: %w", err)
	}
	var list []tableInfo
	err = scanAll(rows, func() error {
		var t tableInfo
		if err := rows.Scan(&t.name.db, &t.name.table, &t.kind, &t.rows); err != nil {
			return err
		}
		if sel.has(t.name.db, t.name.table) {
			list = append(list, t)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing tables: %w", err)
	}
	return list, nil
}

// loadTable returns the table's definition as it is now, nil where there is none.
func (s *server) loadTable(ctx context.Context, name tableName) (*table, error) {
	t := &table{DB: name.db, Name: name.table}
	var kind string
	var collation sql.NullString
	err := s.db.QueryRowContext(ctx, `SELECT TABLE_TYPE, TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`,
		name.db, name.table).Scan(&kind, &collation)
	if err == sql.ErrNoRows {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", name, err)
	}
	if kind != "BASE TABLE" {
		t.Refused = "it is of the kind " + kind
	}
	cs, _, _ := strings.Cut(collation.String, "_")
	t.Charset = canonicalCharset(cs)
	if err := s.loadColumns(ctx, t); err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", name, err)
	}
	if err := s.loadKey(ctx, t); err != nil {
		return nil, fmt.Errorf("reading the keys of %s: %w", name, err)
	}
	return t, nil
}

func (s *server) loadColumns(ctx context.Context, t *table) error {
	rows, err := s.db.QueryContext(ctx, `SELECT COLUMN_NAME, COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, ''), IS_NULLABLE = 'NO', EXTRA LIKE '%VIRTUAL%' OR EXTRA LIKE '%STORED%' OR EXTRA LIKE '%PERSISTENT%'
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`, t.DB, t.Name)
	if err != nil {
		return err
	}
	return scanAll(rows, func() error {
		var name, columnType, cs string
		var notNull, generated bool
		if err := rows.Scan(&name, &columnType, &cs, &notNull, &generated); err != nil {
			return err
		}
		// COLUMN_TYPE escapes as under the default sql_mode, whatever ours is.
		tokens, _ := lex(columnType, dialect{})
		col, err := parseColumnType(&cursor{tokens: tokens}, cs)
		if err != nil {
			col.Type = columnType // which nothing supports
		}
		if strings.HasSuffix(columnType, " COMPRESSED*/") { // MariaDB stores it in a form of its own
			col.Type = "compressed " + col.Type
		}
		col.Name, col.NotNull, col.Generated = name, notNull, generated
		t.Columns = append(t.Columns, col)
		return nil
	})
}

// loadKey finds the columns that identify a row.
func (s *server) loadKey(ctx context.Context, t *table) error {
	rows, err := s.db.QueryContext(ctx, `SELECT INDEX_NAME, COALESCE(COLUMN_NAME, ''), NULLABLE = 'YES' OR SUB_PART IS NOT NULL AND INDEX_NAME <> 'PRIMARY'
		FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0
		ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX`, t.DB, t.Name)
	if err != nil {
		return err
	}
	var candidate string
	var key []int
	usable := false
	take := func() {
		if usable && t.KeyName == "" {
			t.Key, t.KeyName = key, candidate
		}
	}
	err = scanAll(rows, func() error {
		var index, columnName string
		var unfit bool
		if err := rows.Scan(&index, &columnName, &unfit); err != nil {
			return err
		}
		if index != candidate {
			take()
			candidate, key, usable = index, nil, true
		}
		i := t.index(columnName) // -1 for an expression
		key = append(key, i)
		usable = usable && !unfit && i >= 0
		return nil
	})
	take()
	return err
}
