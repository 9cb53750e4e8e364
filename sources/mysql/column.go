package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// column is a column as the source needs to know it: how to name, read and show
// its values. It is part of the resume position, hence the short names.
type column struct {
	Name     string   `json:"n"`
	Type     string   `json:"t"`           // the data type in lower case, synonyms resolved: int, varchar, enum
	Unsigned bool     `json:"u,omitempty"` // of numbers
	Len      int      `json:"l,omitempty"` // as declared: characters, bytes, bits, digits, digits of a second
	Dec      int      `json:"d,omitempty"` // digits after the point of DECIMAL; of FLOAT and DOUBLE plus one, 0 is none declared
	Values   []string `json:"v,omitempty"` // of ENUM and SET
	Charset  string   `json:"c,omitempty"` // of text
	NotNull  bool     `json:"r,omitempty"`
	// Generated columns are computed from others. MariaDB 11.8 leaves them out of the
	// rows of an UPDATE.
	Generated bool `json:"g,omitempty"`
}

// supportedTypes are the data types that can be captured.
var supportedTypes = map[string]bool{
	"tinyint": true, "smallint": true, "mediumint": true, "int": true, "bigint": true, "bit": true, "year": true,
	"float": true, "double": true, "decimal": true,
	"char": true, "varchar": true, "tinytext": true, "text": true, "mediumtext": true, "longtext": true, "json": true,
	"binary": true, "varbinary": true, "tinyblob": true, "blob": true, "mediumblob": true, "longblob": true,
	"enum": true, "set": true,
	"date": true, "time": true, "datetime": true, "timestamp": true,
}

// hasCharset reports whether values of the type are text in a character set.
func hasCharset(dataType string) bool {
	switch dataType {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set":
		return true
	}
	return false
}

// problem says why the column can't be captured; empty where it can.
func (c *column) problem(srv *server) string {
	if !supportedTypes[c.Type] {
		return fmt.Sprintf("its type %s is not supported", strings.ToUpper(c.Type))
	}
	if hasCharset(c.Type) && !srv.decodable(c.Charset) {
		return fmt.Sprintf("its character set %q is not supported", c.Charset)
	}
	return ""
}

// typeSynonyms maps the other names of data types to the one we use.
var typeSynonyms = map[string]string{
	"integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint", "int4": "int", "int8": "bigint",
	"bool": "tinyint", "boolean": "tinyint", "serial": "bigint",
	"dec": "decimal", "numeric": "decimal", "fixed": "decimal", "number": "decimal",
	"float4": "float", "float8": "double", "real": "double",
	"character": "char", "nchar": "char", "nvarchar": "varchar", "varcharacter": "varchar", "varchar2": "varchar",
	"long": "mediumtext", "clob": "longtext", "raw": "varbinary",
}

// parseColumnType reads a column's type at the cursor: what information_schema has
// as COLUMN_TYPE, and what stands in DDL after the column's name up to its
// attributes. charset is the table's, for text that declares none.
func parseColumnType(c *cursor, charset string) (column, error) {
	word, ok := c.name()
	if !ok {
		return column{}, fmt.Errorf("no type")
	}
	word = strings.ToLower(word)
	col := column{Type: word}
	if s, ok := typeSynonyms[word]; ok {
		col.Type = s
	}
	switch word {
	case "national":
		charset = "utf8mb3"
		next, _ := c.name()
		col.Type = strings.ToLower(next)
		if s, ok := typeSynonyms[col.Type]; ok {
			col.Type = s
		}
	case "nchar", "nvarchar":
		charset = "utf8mb3"
	case "bool", "boolean":
		col.Len = 1
	case "serial":
		col.Unsigned, col.NotNull = true, true
	case "double":
		c.accept("PRECISION")
	case "long":
		if c.accept("VARBINARY") {
			col.Type = "mediumblob"
		} else if c.accept("VARCHAR") || c.accept("CHAR", "VARYING") || c.accept("VARCHARACTER") {
			col.Type = "mediumtext"
		}
	}
	if col.Type == "char" && c.accept("VARYING") {
		col.Type = "varchar"
	}
	if c.peek(0).is("(") {
		args, ok := c.parens()
		if !ok {
			return col, fmt.Errorf("type %s: no closing parenthesis", word)
		}
		if err := col.setArguments(args); err != nil {
			return col, fmt.Errorf("type %s: %w", word, err)
		}
	} else {
		col.setDefaults()
	}
	col.readTypeAttributes(c, charset)
	return col, nil
}

// setArguments takes what stands in parentheses behind the type.
func (c *column) setArguments(args []token) error {
	if c.Type == "enum" || c.Type == "set" {
		for _, part := range splitCommas(args) {
			if len(part) != 1 || part[0].kind != tokenString {
				return fmt.Errorf("values other than plain strings")
			}
			// The server cuts trailing spaces off the values.
			c.Values = append(c.Values, strings.TrimRight(part[0].text, " "))
		}
		return nil
	}
	parts := splitCommas(args)
	numbers := make([]int, len(parts))
	for i, p := range parts {
		if len(p) != 1 {
			return fmt.Errorf("arguments that are not numbers")
		}
		n, err := strconv.Atoi(p[0].text)
		if err != nil {
			return fmt.Errorf("argument %q is not a number", p[0].text)
		}
		numbers[i] = n
	}
	c.Len = numbers[0]
	switch {
	case c.Type == "decimal" && len(numbers) > 1:
		c.Dec = numbers[1]
	case c.Type == "float" && len(numbers) == 1:
		if c.Len > 24 {
			c.Type = "double"
		}
	case (c.Type == "float" || c.Type == "double") && len(numbers) > 1:
		c.Dec = numbers[1] + 1
	case c.Type == "text" || c.Type == "blob":
		c.fitBlob()
	}
	if isInteger(c.Type) || c.Type == "year" {
		c.Len = 0 // a display width says nothing of the values
	}
	return nil
}

// fitBlob picks the type that TEXT(n) and BLOB(n) stand for.
func (c *column) fitBlob() {
	prefix := ""
	switch n := c.Len; {
	case n == 0:
	case n < 1<<8:
		prefix = "tiny"
	case n < 1<<16:
	case n < 1<<24:
		prefix = "medium"
	default:
		prefix = "long"
	}
	c.Type = prefix + c.Type
	c.Len = 0
}

// setDefaults fills in what a type without arguments means.
func (c *column) setDefaults() {
	switch c.Type {
	case "decimal":
		c.Len = 10
	case "char", "binary", "bit":
		c.Len = 1
	}
}

func isInteger(dataType string) bool {
	return slices.Contains([]string{"tinyint", "smallint", "mediumint", "int", "bigint"}, dataType)
}

// readTypeAttributes reads what may follow a type directly.
func (c *column) readTypeAttributes(cur *cursor, charset string) {
	bytesOnly := false
	for {
		switch {
		case cur.acceptAny("UNSIGNED", "ZEROFILL"):
			c.Unsigned = true
		case cur.accept("SIGNED"):
		case cur.accept("ASCII"):
			charset = "latin1"
		case cur.accept("UNICODE"):
			charset = "ucs2"
		case cur.accept("BYTE"):
			bytesOnly = true
		case cur.accept("BINARY"): // the binary collation of the same character set
		case cur.accept("CHARACTER", "SET"), cur.accept("CHAR", "SET"), cur.accept("CHARSET"):
			charset = charsetName(cur)
		case cur.accept("COLLATE"):
			if cs := collationCharset(cur); cs != "" {
				charset = cs
			}
		default:
			if bytesOnly || charset == "binary" {
				c.toBytes()
			}
			if hasCharset(c.Type) {
				c.Charset = canonicalCharset(charset)
			}
			return
		}
	}
}

func charsetName(cur *cursor) string {
	cur.accept("=")
	t := cur.peek(0)
	cur.i++
	return strings.ToLower(t.text)
}

// collationCharset reads a collation's name and returns the character set that it
// belongs to; empty for collations that go with several (uca1400 on MariaDB).
func collationCharset(cur *cursor) string {
	name := charsetName(cur)
	if strings.HasPrefix(name, "uca1400") || name == "default" {
		return ""
	}
	cs, _, _ := strings.Cut(name, "_")
	return cs
}

func canonicalCharset(cs string) string {
	if cs == "utf8" {
		return "utf8mb3"
	}
	return cs
}

// toBytes turns a text type into the type that the server makes of it where its
// character set is binary.
func (c *column) toBytes() {
	switch c.Type {
	case "char":
		c.Type = "binary"
	case "varchar":
		c.Type = "varbinary"
	case "tinytext", "text", "mediumtext", "longtext":
		c.Type = strings.TrimSuffix(c.Type, "text") + "blob"
	}
}

// table is a table's definition at some position of the log.
type table struct {
	DB      string   `json:"db"`
	Name    string   `json:"table"`
	Columns []column `json:"columns"`
	// Key holds the indexes of the columns that identify a row, in the key's order:
	// the primary key's, else those of the first unique key without NULL.
	Key []int `json:"key"`
	// KeyName is the name of the key: PRIMARY, or the unique key's.
	KeyName string `json:"keyName,omitempty"`
	// Charset is the default for columns that are added later.
	Charset string `json:"charset,omitempty"`
	// Former are the columns of the key that the table had while its definition was known;
	// only in the resume position, of tables whose definition is not.
	Former []column `json:"former,omitempty"`
	// Refused says why the table as a whole can't be captured.
	Refused string `json:"refused,omitempty"`
}

func (t *table) full() string { return t.DB + "." + t.Name }

// index returns the place of the named column, -1 where there is none.
func (t *table) index(name string) int {
	return slices.IndexFunc(t.Columns, func(c column) bool { return strings.EqualFold(c.Name, name) })
}

// clone returns a copy that shares nothing that is ever changed in place.
func (t *table) clone() *table {
	c := *t
	c.Columns = slices.Clone(t.Columns)
	c.Key = slices.Clone(t.Key)
	return &c
}
