package mysql

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// selection decides which tables are captured.
type selection struct {
	take, leave []*regexp.Regexp
}

// systemDatabases are never captured: they hold the server's own affairs.
var systemDatabases = map[string]bool{"mysql": true, "sys": true, "information_schema": true, "performance_schema": true}

// newSelection compiles the patterns of the field `tables`. fold makes them ignore
// case, for servers that do (lower_case_table_names other than 0).
func newSelection(patterns []string, fold bool) (*selection, error) {
	s := &selection{}
	for _, p := range patterns {
		body, negative := strings.CutPrefix(p, "!")
		re, err := compilePattern(body, fold)
		if err != nil {
			return nil, fmt.Errorf("table pattern %q: %w", p, err)
		}
		if negative {
			s.leave = append(s.leave, re)
		} else {
			s.take = append(s.take, re)
		}
	}
	if len(s.take) == 0 {
		return nil, fmt.Errorf("table patterns %q select nothing: all of them take away", patterns)
	}
	return s, nil
}

// compilePattern turns one pattern into an expression that matches database.table.
func compilePattern(p string, fold bool) (*regexp.Regexp, error) {
	var expr string
	if len(p) > 1 && strings.HasPrefix(p, "/") && strings.HasSuffix(p, "/") {
		expr = p[1 : len(p)-1]
	} else {
		db, table, ok := strings.Cut(p, ".")
		if !ok || db == "" || table == "" {
			return nil, errors.New("want database.table with * and ? as wildcards, or an expression between slashes")
		}
		expr = globExpr(db) + `\.` + globExpr(table)
	}
	expr = "^(?:" + expr + ")$"
	if fold {
		expr = "(?i)" + expr
	}
	return regexp.Compile(expr)
}

// globExpr translates * and ?; neither crosses the dot between database and table
// in the part before it.
func globExpr(glob string) string {
	e := regexp.QuoteMeta(glob)
	e = strings.ReplaceAll(e, `\*`, `[^.]*`)
	return strings.ReplaceAll(e, `\?`, `[^.]`)
}

// has reports whether the table is captured.
func (s *selection) has(db, table string) bool {
	if systemDatabases[strings.ToLower(db)] {
		return false
	}
	name := db + "." + table
	for _, re := range s.leave {
		if re.MatchString(name) {
			return false
		}
	}
	for _, re := range s.take {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}
