package mysql

import (
	"fmt"
	"slices"
)

// agree compares a definition with a table map of the log. An error names the
// first difference; then the definition must not be used for the rows that follow.
func (r *registry) agree(t *table, m *tableMap) error {
	if len(t.Columns) != len(m.columns) {
		return fmt.Errorf("the log has %d columns where the definition has %d", len(m.columns), len(t.Columns))
	}
	for i := range m.columns {
		if why := r.differs(&t.Columns[i], &m.columns[i], m); why != "" {
			return fmt.Errorf("column %d (%s): %s", i+1, t.Columns[i].Name, why)
		}
	}
	if m.full && t.KeyName == "PRIMARY" && !slices.Equal(t.Key, m.key) {
		return fmt.Errorf("the log has another primary key")
	}
	return nil
}

func (r *registry) differs(c *column, l *mapColumn, m *tableMap) string {
	if !sameKind(logType(c.Type, r.srv.flavor), l.kind) {
		return fmt.Sprintf("the log has type %d for a %s", l.kind, c.Type)
	}
	if m.full && l.name != c.Name {
		return fmt.Sprintf("the log calls it %s", l.name)
	}
	if m.signs && isInteger(c.Type) && l.unsigned != c.Unsigned {
		return "the log differs about UNSIGNED"
	}
	if want, known := r.storedMeta(c); known && want != l.meta {
		return fmt.Sprintf("the log has another length or precision for a %s", c.Type)
	}
	if (l.kind == typeDatetime2 || l.kind == typeTimestamp2 || l.kind == typeTime2) && int(l.meta) != c.Len {
		return "the log has other digits of a second"
	}
	if m.charsets && l.collation != 0 {
		cs, known := r.srv.collations[l.collation]
		if hasCharset(c.Type) && known && cs != c.Charset {
			return fmt.Sprintf("the log has character set %s, the definition %s", cs, c.Charset)
		}
	}
	if l.hasValues && len(l.values) != len(c.Values) {
		return "the log has other values of ENUM or SET"
	}
	if l.hasValues && isUTF8Set(c.Charset) && !slices.Equal(l.values, c.Values) {
		return "the log has other values of ENUM or SET"
	}
	return ""
}

func isUTF8Set(charset string) bool { return charset == "utf8mb4" || charset == "utf8mb3" }

// sameKind allows for the forms that dates had before MySQL 5.6.
func sameKind(want, got byte) bool {
	if want == got {
		return true
	}
	switch want {
	case typeDatetime2:
		return got == typeDatetime
	case typeTimestamp2:
		return got == typeTimestamp
	case typeTime2:
		return got == typeTime
	case typeVarchar:
		return got == typeVarString
	}
	return false
}

// storedMeta returns the metadata that the log has for a column, where the
// definition says enough to know.
func (r *registry) storedMeta(c *column) (uint16, bool) {
	switch c.Type {
	case "decimal":
		return uint16(c.Len)<<8 | uint16(c.Dec), true
	case "bit":
		return uint16(c.Len/8)<<8 | uint16(c.Len%8), true
	case "varchar", "char":
		n := r.srv.maxLen[c.Charset]
		return uint16(c.Len * n), n > 0
	case "varbinary", "binary":
		return uint16(c.Len), true
	case "tinytext", "tinyblob":
		return 1, true
	case "text", "blob":
		return 2, true
	case "mediumtext", "mediumblob":
		return 3, true
	case "longtext", "longblob":
		return 4, true
	case "enum":
		if len(c.Values) > 255 {
			return 2, true
		}
		return 1, true
	case "set":
		n := (len(c.Values) + 7) / 8
		if n > 4 {
			n = 8
		}
		return uint16(n), true
	}
	// The older forms of dates have no metadata; the newer ones have the digits.
	return 0, false
}
