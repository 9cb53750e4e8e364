package mysql

import "slices"

// sameKey reports whether rows have the same keys, as records have them, under both
// definitions. The letters' case of the names counts, for they are part of it.
func sameKey(a, b *table) bool {
	return sameKeyColumns(a.keyColumns(), b.keyColumns())
}

func sameKeyColumns(a, b []column) bool {
	return slices.EqualFunc(a, b, func(x, y column) bool { return x.Name == y.Name && sameForm(&x, &y) })
}

func (t *table) keyColumns() []column {
	list := make([]column, len(t.Key))
	for i, k := range t.Key {
		list[i] = t.Columns[k]
	}
	return list
}

// sameForm reports whether each value of a column is written as before when the column's
// definition changes from a to b.
func sameForm(a, b *column) bool {
	switch {
	case isInteger(a.Type):
		return isInteger(b.Type)
	case a.Type == "enum" || a.Type == "set":
		return a.Type == b.Type && !slices.ContainsFunc(a.Values, func(v string) bool { return !slices.Contains(b.Values, v) })
	case hasCharset(a.Type):
		// CHAR has no blanks at its end.
		return hasCharset(b.Type) && b.Type != "enum" && b.Type != "set" && (b.Type != "char" || a.Type == "char") &&
			holds(a.Len, b.Len) && (a.Charset == b.Charset || b.Charset == "utf8mb4")
	case a.Type == "varbinary" || a.Type == "decimal":
		return a.Type == b.Type && a.Dec == b.Dec && holds(a.Len, b.Len)
	}
	return a.Type == b.Type && a.Len == b.Len && a.Dec == b.Dec
}

// holds reports whether what is as long as a fits in b; zero is a length that has no
// limit of its own.
func holds(a, b int) bool { return b == 0 || a != 0 && a <= b }
