package mysql

import (
	"fmt"
	"strings"
)

// chunkQuery selects up to limit rows behind the key given as literals, in the order
// of the key. The server orders and compares: under its collations no client could.
//
// For a key (a, b) behind (x, y) the condition is
//
//	a >= x AND (a > x OR (a = x AND b > y))
//
// which, unlike the row constructor (a, b) > (x, y), is answered from the index.
func chunkQuery(t *table, last []string, limit int) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i := range t.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteName(t.Columns[i].Name))
	}
	for i := range t.Key {
		if byNumber(t, i) {
			b.WriteString(", ")
			b.WriteString(keyExpr(t, i))
		}
	}
	fmt.Fprintf(&b, " FROM %s.%s", quoteName(t.DB), quoteName(t.Name))
	if last != nil {
		b.WriteString(" WHERE ")
		if len(last) > 1 {
			fmt.Fprintf(&b, "%s >= %s AND ", keyExpr(t, 0), last[0])
		}
		writeBehind(&b, t, last, 0)
	}
	b.WriteString(" ORDER BY ")
	for i, k := range t.Key {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteName(t.Columns[k].Name))
	}
	fmt.Fprintf(&b, " LIMIT %d", limit)
	return b.String()
}

func writeBehind(b *strings.Builder, t *table, last []string, i int) {
	if i == len(last)-1 {
		fmt.Fprintf(b, "%s > %s", keyExpr(t, i), last[i])
		return
	}
	fmt.Fprintf(b, "(%s > %s OR (%s = %s AND ", keyExpr(t, i), last[i], keyExpr(t, i), last[i])
	writeBehind(b, t, last, i+1)
	b.WriteString("))")
}

// byNumber reports whether the i-th column of the key compares by its number. ENUM
// and SET sort by it, but compare with text by their text.
func byNumber(t *table, i int) bool {
	switch t.Columns[t.Key[i]].Type {
	case "enum", "set", "bit":
		return true
	}
	return false
}

// keyExpr returns what to compare of the i-th column of the key.
func keyExpr(t *table, i int) string {
	name := quoteName(t.Columns[t.Key[i]].Name)
	if byNumber(t, i) {
		return name + "+0"
	}
	return name
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// keyValues keeps the values of a row's key.
type keyValues struct {
	of [][]byte
}

// keep takes the key from a row that chunkQuery selected.
func (k *keyValues) keep(t *table, row [][]byte) {
	if k.of == nil {
		k.of = make([][]byte, len(t.Key))
	}
	extra := len(t.Columns)
	for i, column := range t.Key {
		v := row[column]
		if byNumber(t, i) {
			v = row[extra]
			extra++
		}
		k.of[i] = append(k.of[i][:0], v...)
	}
}

// literals returns the key as literals that compare equal to it. Text is given by its
// bytes and character set; the column's collation then decides.
func (k *keyValues) literals(t *table) []string {
	out := make([]string, len(t.Key))
	for i, column := range t.Key {
		c, v := &t.Columns[column], k.of[i]
		switch {
		case byNumber(t, i), isInteger(c.Type), c.Type == "year", c.Type == "decimal", c.Type == "double":
			out[i] = string(v)
		case hasCharset(c.Type):
			out[i] = fmt.Sprintf("_%s X'%X'", c.Charset, v)
		case strings.HasSuffix(c.Type, "blob"), strings.HasSuffix(c.Type, "binary"):
			out[i] = fmt.Sprintf("X'%X'", v)
		default: // dates and times
			out[i] = "'" + string(v) + "'"
		}
	}
	return out
}
