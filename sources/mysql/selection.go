package mysql

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selection decides which tables are captured.
type selection struct {
	take, leave []pattern
}

// pattern matches tables by the two parts of their name, or, as an expression, by the
// whole of it.
type pattern struct{ db, table, whole *regexp.Regexp }

func (p *pattern) match(db, table string) bool {
	if p.whole != nil {
		return p.whole.MatchString(db + "." + table)
	}
	return p.db.MatchString(db) && p.table.MatchString(table)
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

// compilePattern compiles one pattern.
func compilePattern(p string, fold bool) (c pattern, err error) {
	if len(p) > 1 && strings.HasPrefix(p, "/") && strings.HasSuffix(p, "/") {
		c.whole, err = compileWhole(p[1:len(p)-1], fold)
		return c, err
	}
	db, table, ok := strings.Cut(p, ".")
	if !ok || db == "" || table == "" {
		return c, errors.New("want database.table with * and ? as wildcards, or an expression between slashes")
	}
	if c.db, err = compileWhole(globExpr(db), fold); err == nil {
		c.table, err = compileWhole(globExpr(table), fold)
	}
	return c, err
}

// compileWhole returns the expression that matches from end to end.
func compileWhole(expr string, fold bool) (*regexp.Regexp, error) {
	flags := "s"
	if fold {
		flags = "si"
	}
	return regexp.Compile("(?" + flags + ")^(?:" + expr + ")$")
}

// globExpr translates * and ?.
func globExpr(glob string) string {
	e := regexp.QuoteMeta(glob)
	e = strings.ReplaceAll(e, `\*`, `.*`)
	return strings.ReplaceAll(e, `\?`, `.`)
}

// has reports whether the table is captured.
func (s *selection) has(db, table string) bool {
	if systemDatabases[strings.ToLower(db)] {
		return false
	}
	match := func(p pattern) bool { return p.match(db, table) }
	return !slices.ContainsFunc(s.leave, match) && slices.ContainsFunc(s.take, match)
}
