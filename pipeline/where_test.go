package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

func where(t *testing.T, text string) *pipeline.Where {
	t.Helper()
	w, err := pipeline.CompileWhere(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

func event(t *testing.T, value string) pipeline.Delivery {
	t.Helper()
	d, err := pipeline.NewDelivery(pipeline.Record{Stream: "app.events", Source: "app", Key: []byte("k1"), Value: []byte(value)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhereJudgesValuesExactly(t *testing.T) {
	const row = `{"s":"paid","n":5,"f":1.50,"u":18446744073709551615,"big":9007199254740993,"dec":0.1234567890123456789,
		"neg":-3,"yes":true,"nul":null,"tags":["a","b"],"nums":[1,2.5],"obj":{"x":{"y":7}},"type":"t","count":2,"source":"mine","key":"field","e":1e2,"huge":1e400}`
	cases := map[string]bool{
		`s == "paid"`:                             true,
		`s != "draft" && n == 5`:                  true,
		`missing == nil`:                          true,
		`missing != "draft"`:                      true,
		`missing == "draft"`:                      false,
		`nul == nil`:                              true,
		`f == 1.5`:                                true,
		`f > 1 and f < 2`:                         true,
		`n >= 5.0`:                                true,
		`big == 9007199254740993`:                 true,
		`big == 9007199254740992`:                 false,
		`big > 9007199254740992`:                  true,
		`big - 1 == 9007199254740992`:             true,
		`u > 9223372036854775807`:                 true,
		`u == number("18446744073709551615")`:     true,
		`u == number("18446744073709551614")`:     false,
		`u - 1 == number("18446744073709551614")`: true,
		`9223372036854775807 + 1 == number("9223372036854775808")`: true,
		`dec == number("0.1234567890123456789")`:                   true,
		`dec == number("0.1234567890123456788")`:                   false,
		`dec < 0.13`:                                               true,
		`e == 100`:                                                 true,
		`huge > 1`:                                                 true,
		`neg < 0`:                                                  true,
		`neg == -3`:                                                true,
		`yes`:                                                      true,
		`not yes`:                                                  false,
		`"a" in tags`:                                              true,
		`"c" not in tags`:                                          true,
		`2.5 in nums`:                                              true,
		`n in [1, 5]`:                                              true,
		`n in 1..10`:                                               true,
		`s in ["paid", "sent"]`:                                    true,
		`any(nums, # > 2)`:                                         true,
		`obj.x.y == 7`:                                             true,
		`row.obj.x.y == 7`:                                         true,
		`missing?.x == nil`:                                        true,
		`type == "t" && count == 2`:                                true,
		`source == "app" && row.source == "mine"`:             true,
		`key == "k1" && row["key"] == "field"`:                true,
		`stream == "app.events" and table == "" && op == "c"`: true,
		`s startsWith "pa" or s matches "^x"`:                 true,
		`nums == [1, 2.5]`:                                    true,
		`n == "5"`:                                            false,
		`len(tags) == 2`:                                      true,
		`(missing ?? 3) > 2`:                                  true,
		`$env["n"] == 5`:                                      true,
		`n * 2 + 1 == 11`:                                     true,
		`s + "!" == "paid!"`:                                  true,
	}
	for text, want := range cases {
		d := event(t, row)
		if got, err := where(t, text).Apply(&d); got != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestWhereIsNeverSilentlyFalse(t *testing.T) {
	cases := map[string]string{
		`missing > 5`:      "nil > 5",
		`n > "5"`:          `5 > "5"`,
		`missing.x == 1`:   "cannot fetch x",
		`n`:                "want true or false",
		`nothing`:          "want true or false",
		`missing + 1 == 1`: "a field is missing",
		`"a" in s`:         "contains",
		`bad > 1`:          "out of range",
		`n / "x" == 1`:     "",
	}
	for text, want := range cases {
		d := event(t, `{"n":5,"s":"abc","bad":1e999999999}`)
		if keep, err := where(t, text).Apply(&d); keep || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error with %q", text, keep, err, want)
		}
	}
	text, err := pipeline.NewDelivery(pipeline.Record{Stream: "s", Value: []byte("no json")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := where(t, `status == "x"`).Apply(&text); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
		t.Errorf("a text: got %v, want an error", err)
	}
	if keep, err := where(t, `stream == "s"`).Apply(&text); !keep || err != nil {
		t.Errorf("a text, by its stream: got %v, %v, want true", keep, err)
	}
}

func TestWhereIsJudgedOnBeforeAndAfter(t *testing.T) {
	const condition = `table == "orders" && status != "draft"`
	ours := func(table, op, before, after string) pipeline.Record {
		return pipeline.Record{Table: table, Source: "db", Key: []byte(`{"id":1}`),
			Value: []byte(fmt.Sprintf(`{"before":%s,"after":%s,"op":%q}`, before, after, op))}
	}
	foreign := func(op, before, after string) pipeline.Record {
		return pipeline.Record{Key: []byte(`{"id":1}`),
			Value: []byte(fmt.Sprintf(`{"before":%s,"after":%s,"op":%q,"source":{"db":"shop","table":"orders"}}`, before, after, op))}
	}
	const draft, paid, sent = `{"id":1,"status":"draft"}`, `{"id":1,"status":"paid"}`, `{"id":1,"status":"sent"}`
	cases := []struct {
		name          string
		record        pipeline.Record
		want          string // the operation, empty where it is not kept
		before, after string
	}{
		{"insert in", ours("shop.orders", "c", `null`, paid), "c", "", paid},
		{"insert out", ours("shop.orders", "c", `null`, draft), "", "", ""},
		{"read in", ours("shop.orders", "r", `null`, paid), "r", "", paid},
		{"update inside", ours("shop.orders", "u", paid, sent), "u", paid, sent},
		{"update enters", ours("shop.orders", "u", draft, paid), "c", "", paid},
		{"update leaves", ours("shop.orders", "u", paid, draft), "d", paid, ""},
		{"update outside", ours("shop.orders", "u", draft, draft), "", "", ""},
		{"delete inside", ours("shop.orders", "d", paid, `null`), "d", paid, ""},
		{"delete outside", ours("shop.orders", "d", draft, `null`), "", "", ""},
		{"another table", ours("shop.items", "c", `null`, paid), "", "", ""},
		{"truncate", ours("shop.orders", "t", `null`, `null`), "t", "", ""},
		{"truncate of another table", ours("shop.items", "t", `null`, `null`), "", "", ""},
		{"delete without image", ours("shop.orders", "d", `null`, `null`), "d", `{"id":1}`, ""},
		{"foreign update inside, no before", foreign("u", `null`, paid), "u", "", paid},
		{"foreign update to outside, no before", foreign("u", `null`, draft), "d", draft, ""},
		{"foreign update to outside, before of the key", foreign("u", `{"id":1}`, draft), "d", `{"id":1}`, ""},
		{"foreign delete with nulls for columns", foreign("d", `{"id":1,"status":null}`, `null`), "d", `{"id":1,"status":null}`, ""},
		{"tombstone of who knows what table", pipeline.Record{Key: []byte(`{"id":1}`)}, "", "", ""},
	}
	for _, c := range cases {
		d, err := pipeline.NewDelivery(c.record, 0)
		if err != nil {
			t.Fatal(err)
		}
		keep, err := where(t, condition).Apply(&d)
		if err != nil || keep != (c.want != "") {
			t.Errorf("%s: got keep %v, %v", c.name, keep, err)
			continue
		}
		if keep && (d.Op.String() != c.want || string(d.Before.JSON()) != c.before || string(d.After.JSON()) != c.after) {
			t.Errorf("%s: got %s before %s after %s, want %s %s %s", c.name, d.Op, d.Before.JSON(), d.After.JSON(), c.want, c.before, c.after)
		}
	}
}

// A row whose column was NULL before must not stay out of the set for ever.
func TestABeforeThatCannotBeJudgedKeepsNothingOut(t *testing.T) {
	w := where(t, "n > 3")
	for _, c := range []struct{ after, want string }{{`{"id":1,"n":9}`, "u"}, {`{"id":1,"n":1}`, "d"}} {
		d, err := pipeline.NewDelivery(pipeline.Record{Table: "shop.orders", Source: "db", Key: []byte(`{"id":1}`),
			Value: []byte(`{"before":{"id":1,"n":null},"after":` + c.after + `,"op":"u"}`)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if keep, err := w.Apply(&d); !keep || err != nil || d.Op.String() != c.want {
			t.Errorf("NULL to %s: got %v, %v, op %s, want op %s", c.after, keep, err, d.Op, c.want)
		}
	}
}

// A row that no longer can be judged must not stay in the set as it was.
func TestAnAfterThatCannotBeJudgedLeavesTheSet(t *testing.T) {
	w := where(t, `table == "orders" && n > 3`)
	for _, c := range []struct {
		name, before string
		table        string
		leaves, dead bool
	}{
		{"was inside", `{"id":1,"n":9}`, "shop.orders", true, true},
		{"was outside", `{"id":1,"n":1}`, "shop.orders", false, true},
		{"was not judged either", `{"id":1,"n":null}`, "shop.orders", false, true},
		{"nobody knows what it was", `null`, "shop.orders", true, true},
		{"of another table", `{"id":1,"n":9}`, "shop.items", false, false},
	} {
		d, err := pipeline.NewDelivery(pipeline.Record{Table: c.table, Source: "db", Key: []byte(`{"id":1}`),
			Value: []byte(`{"before":` + c.before + `,"after":{"id":1,"n":null},"op":"u"}`)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		keep, err := w.Apply(&d)
		if keep != c.leaves || (err != nil) != c.dead || keep && (d.Op != pipeline.OpDelete || d.Before.Absent()) {
			t.Errorf("%s: got keep %v, %v, op %s, before %s", c.name, keep, err, d.Op, d.Before.JSON())
		}
	}
}

func TestADeleteOfWhatCannotBeJudgedGoesOn(t *testing.T) {
	d, err := pipeline.NewDelivery(pipeline.Record{Table: "shop.orders", Source: "db", Key: []byte(`{"id":1}`),
		Value: []byte(`{"before":{"id":1,"n":null},"after":null,"op":"d"}`)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if keep, err := where(t, "n > 3").Apply(&d); !keep || err != nil || d.Op != pipeline.OpDelete {
		t.Errorf("got %v, %v, op %s", keep, err, d.Op)
	}
}

func TestADeleteThatMayConcernTheSetGoesOn(t *testing.T) {
	tombstone, err := pipeline.NewDelivery(pipeline.Record{Stream: "s", Key: []byte(`{"id":1}`)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`status == "paid"`:                              true,
		`not (status == "draft")`:                       true,
		`stream == "s" && status == "paid"`:             true,
		`stream == "t" && status == "paid"`:             false,
		`stream == "t" || status == "paid"`:             true,
		`!(stream == "s" && status != "gone")`:          true,
		`!(stream == "s" || status != "gone")`:          false,
		`status == "a" ? stream == "t" : stream == "t"`: true,
		`let x = status; x == "paid"`:                   true,
	} {
		d := tombstone
		if got, err := where(t, text).Apply(&d); got != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestWhereIsRefusedWithItsColumn(t *testing.T) {
	for text, want := range map[string]string{
		`status ==`:                  "column 9: unexpected token",
		`a == 1 &&& b`:               "column 10: unexpected token",
		`status == "x" status`:       "column 15: unexpected token",
		`frob(status)`:               "no function frob",
		`"text"`:                     "the condition gives a string",
		`id == 18446744073709551615`: `number("...")`,
	} {
		if _, err := pipeline.CompileWhere(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestFileRefusesABadWhereAtItsLine(t *testing.T) {
	file := pipeline.NewFile(pipeline.Kinds{})
	err := configs.Decode("shop.yaml", []byte("version: 1\npipeline: p\njournal: {dir: d}\nsinks:\n  - name: s\n    streams: [a]\n    where: status ==\n"), file)
	if err == nil {
		t.Fatal("got no error")
	}
}

func BenchmarkWhere(b *testing.B) {
	w, err := pipeline.CompileWhere(`table == "orders" && status != "draft" && n > 5`)
	if err != nil {
		b.Fatal(err)
	}
	r := pipeline.Record{Table: "shop.orders", Source: "db", Key: []byte(`{"id":1}`),
		Value: []byte(`{"before":{"id":1,"status":"paid","n":7,"name":"somebody with a name","price":12.50},"after":{"id":1,"status":"sent","n":7,"name":"somebody with a name","price":12.50},"op":"u"}`)}
	b.ReportAllocs()
	for b.Loop() {
		d, err := pipeline.NewDelivery(r, 0)
		if err != nil {
			b.Fatal(err)
		}
		if keep, err := w.Apply(&d); !keep || err != nil {
			b.Fatal(keep, err)
		}
	}
}

func TestWhereTellsHowToCompare(t *testing.T) {
	t.Parallel()
	_, err := pipeline.CompileWhere(`table = "orders"`)
	if err == nil || !strings.Contains(err.Error(), "write == to compare") {
		t.Errorf("got %v, want the hint to write ==", err)
	}
}
