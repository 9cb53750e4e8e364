package mysql

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
)

func TestGTIDSets(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-2222-3333-4444-555555555555"
	s, err := parseMySQLGTIDs(strings.ToUpper(a) + ":1-3:5, \n" + b + ":7:tag:1-2:9")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.String(), b+":7,"+b+":tag:1-2:9,"+a+":1-3:5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.add(gtid{source: a, number: 4})
	s.add(gtid{source: b + ":tag", number: 10})
	s.add(gtid{source: b, number: 5})
	if got, want := s.String(), b+":5:7,"+b+":tag:1-2:9-10,"+a+":1-5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for other, want := range map[string]bool{a + ":2-4": true, a + ":5-6": false, b + ":tag:9-10": true, b + ":6": false, b + ":other:1": false, "": true} {
		o, err := parseMySQLGTIDs(other)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.contains(o); got != want {
			t.Errorf("contains %q is %v, want %v", other, got, want)
		}
	}
	for _, bad := range []string{"x", a, a + ":", a + ":0-", a + ":5-3", a + ":1-2-3"} {
		if got, err := parseMySQLGTIDs(bad); err == nil {
			t.Errorf("%q gives %s, want an error", bad, got)
		}
	}
	m, err := parseMariaGTIDs("1-10-100,0-1-5")
	if err != nil {
		t.Fatal(err)
	}
	m.add(gtid{domain: 1, server: 11, number: 101})
	if got, want := m.String(), "0-1-5,1-11-101"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A row that can't be decoded is its table's affair.
func TestUndecodableRowParksItsTable(t *testing.T) {
	srv := &server{flavor: flavorMySQL}
	r := &reader{
		cfg: &Config{}, srv: srv, see: &progress{}, log: slog.New(slog.DiscardHandler), out: nowhere{},
		reg: &registry{srv: srv}, parked: map[tableName]parkedTable{}, mine: map[tableName]bool{},
		at: place{"b.000001", 500}, tx: transaction{id: []byte("tx"), rows: map[string]int64{}},
	}
	bad := &table{DB: "d", Name: "bad", Columns: []column{{Name: "id", Type: "int"}}, Key: []int{0}}
	codec, err := r.reg.newCodec(t.Context(), bad)
	if err != nil {
		t.Fatal(err)
	}
	known := &binding{m: &tableMap{db: "d", name: "bad"}, codec: codec, bound: true}
	r.bindings = map[uint64]*binding{7: known}
	event := []byte{7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0xFF, 0, 5, 0, 0, 0, 0, 6, 0} // the second row ends too early
	if err := r.rows(&replication.EventHeader{EventType: replication.WRITE_ROWS_EVENTv2}, event); err != nil {
		t.Fatalf("the source stops: %v", err)
	}
	p := r.parked[tableName{"d", "bad"}]
	if p.Code != codeUndecodable || !strings.Contains(p.At, "b.000001:500") || known.codec != nil {
		t.Errorf("parked as %+v, codec %v", p, known.codec)
	}
	if n := len(r.batch.records); n != 1 {
		t.Errorf("%d records, want the row before", n)
	}
}

func TestGTIDSetsAsPeopleReadThem(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-2222-3333-4444-555555555555"
	for set, want := range map[string]string{
		a + ":1-77":                              "3e11fa47…:1-77",
		a + ":1-3:5-9":                           "3e11fa47…:…:5-9",
		b + ":7," + b + ":tag:1-2:9," + a + ":1": "11111111…:7,11111111…:tag:…:9,3e11fa47…:1",
		"0-1-5,1-11-101":                         "0-1-5,1-11-101",
		"0-1-1,1-1-1,2-1-1,3-1-1,4-1-1,5-1-1":    "0-1-1,1-1-1,2-1-1,3-1-1 and 2 more",
	} {
		if got := shortGTIDs(set); got != want {
			t.Errorf("%s is shown as %s, want %s", set, got, want)
		}
	}
}

func TestPlacesAreOrderedByNumber(t *testing.T) {
	for _, c := range []struct {
		a, b place
		want bool
	}{
		{place{"b.999999", 500}, place{"b.1000000", 4}, true},
		{place{"b.1000000", 4}, place{"b.999999", 500}, false},
		{place{"b.000001", 4}, place{"b.000001", 5}, true},
		{place{"b.000001", 1 << 33}, place{"b.000002", 4}, true},
		{place{"old.000009", 4}, place{"new.000010", 4}, true},
	} {
		if got := c.a.before(c.b); got != c.want {
			t.Errorf("%s before %s is %v", c.a, c.b, got)
		}
	}
}

// The header of an event counts 32 bits; a long transaction goes on beyond them.
func TestPlacesBeyondFourGiB(t *testing.T) {
	r := &reader{at: place{"b.000001", 4}}
	var want uint64 = 4
	for range 12 {
		want += 1 << 30
		r.advance(&replication.EventHeader{LogPos: uint32(want)})
		if r.at.Pos != want {
			t.Fatalf("the place is %d, want %d", r.at.Pos, want)
		}
	}
	r.advance(&replication.EventHeader{LogPos: 0})
	if r.at.Pos != want {
		t.Errorf("an event without a place moved it to %d", r.at.Pos)
	}
}

func TestDecimals(t *testing.T) {
	for _, c := range []struct {
		packed           string
		precision, scale int
		want             string
	}{
		{"\x80\x00\x00\x00\x00", 10, 0, `"0"`},
		{"\x81\x0D\xFB\x38\xD2\x04\xD2", 14, 4, `"1234567890.1234"`},
		{"\x7E\xF2\x04\xC7\x2D\xFB\x2D", 14, 4, `"-1234567890.1234"`},
		{"\x80\x01", 2, 2, ``}, // one byte holds two digits
		{"\xB2", 2, 2, `"0.50"`},
		{"\x7F\xFE", 4, 2, `"-0.01"`},
	} {
		got, _, err := appendDecimal(nil, []byte(c.packed), c.precision, c.scale)
		if c.want == "" {
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%x: got %s, %v, want %s", c.packed, got, err, c.want)
		}
	}
	if _, _, err := appendDecimal(nil, []byte{0x80}, 10, 0); err == nil {
		t.Error("a decimal that is cut short gives no error")
	}
}

// Damaged events end in an error, never in a panic.
func TestDamagedEvents(t *testing.T) {
	seeds := [][]byte{
		{1, 0, 0, 0, 0, 0, 1, 0, 4, 't', 'e', 's', 't', 0, 1, 't', 0, 3, 3, 15, 254, 4, 100, 0, 247, 1, 7, 1, 1, 0x40, 4, 9, 2, 'i', 'd', 1, 'v', 1, 'e', 'x'},
		{0, 2, 0, 20, 0, 11, 0, 1, 0, 12, 12, 0, 'a', 1, 'b'},
	}
	for _, seed := range seeds {
		for cut := range seed {
			_, _ = parseTableMap(seed[:cut])
			_, _ = appendJSONColumn(nil, seed[:cut])
			_, _ = parseQuery(replication.QUERY_EVENT, seed[:cut])
			_, _ = parseRows(replication.UPDATE_ROWS_EVENTv2, seed[:cut])
			for bit := range 8 {
				b := append([]byte(nil), seed...)
				b[cut] ^= 1 << bit
				_, _ = parseTableMap(b)
				_, _ = appendJSONColumn(nil, b)
				_, _ = parseQuery(replication.QUERY_EVENT, b)
				_, _ = parseRows(replication.UPDATE_ROWS_EVENTv2, b)
			}
		}
	}
}

func TestColumnTypes(t *testing.T) {
	for text, want := range map[string]column{
		"int(10) unsigned zerofill": {Type: "int", Unsigned: true},
		"INTEGER":                   {Type: "int"},
		"decimal":                   {Type: "decimal", Len: 10},
		"NUMERIC(20, 5)":            {Type: "decimal", Len: 20, Dec: 5},
		"float(30)":                 {Type: "double", Len: 30},
		"FLOAT(7,4)":                {Type: "float", Len: 7, Dec: 5},
		"double precision":          {Type: "double"},
		"CHAR":                      {Type: "char", Len: 1, Charset: "utf8mb4"},
		"national varchar(20)":      {Type: "varchar", Len: 20, Charset: "utf8mb3"},
		"CHARACTER VARYING(9) COLLATE latin1_bin": {Type: "varchar", Len: 9, Charset: "latin1"},
		"varchar(9) character set binary":         {Type: "varbinary", Len: 9},
		"TEXT(100000)":                            {Type: "mediumtext", Charset: "utf8mb4"},
		"blob(10)":                                {Type: "tinyblob"},
		"LONG VARBINARY":                          {Type: "mediumblob"},
		"enum('a','it''s','b,c',\"d\")":           {Type: "enum", Values: []string{"a", "it's", "b,c", "d"}, Charset: "utf8mb4"},
		"datetime(6)":                             {Type: "datetime", Len: 6},
		"BOOLEAN":                                 {Type: "tinyint", Len: 1},
		"SERIAL":                                  {Type: "bigint", Unsigned: true, NotNull: true},
		"geometry":                                {Type: "geometry"},
	} {
		tokens, _ := lex(text, dialect{})
		got, err := parseColumnType(&cursor{tokens: tokens}, "utf8mb4")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if g, w := showColumn(got), showColumn(want); g != w {
			t.Errorf("%s: got %s, want %s", text, g, w)
		}
	}
}

func showColumn(c column) string {
	r := &registry{tables: map[tableName]*table{{"d", "t"}: {DB: "d", Name: "t", Columns: []column{c}}}}
	return r.pack()
}

func TestLexing(t *testing.T) {
	tokens, ok := lex("ALTER/**/TABLE `a``b` -- no\n ADD 'it''s \\' x' /*!50000 \"q\" */ /*!99999 never */ # end", dialect{version: 80000})
	var got []string
	for _, token := range tokens {
		got = append(got, token.text)
	}
	if want := "ALTER|TABLE|a`b|ADD|it's ' x|q"; !ok || strings.Join(got, "|") != want {
		t.Errorf("got %v %v, want %s", got, ok, want)
	}
	if _, ok := lex("x 'open", dialect{}); ok {
		t.Error("an open string is not noticed")
	}
	tokens, _ = lex(`"a" 'b\'`, dialect{ansiQuotes: true, noBackslash: true})
	if len(tokens) != 2 || tokens[0].kind != tokenName || tokens[1].text != `b\` {
		t.Errorf("under ANSI_QUOTES and NO_BACKSLASH_ESCAPES: %v", tokens)
	}
}
