package pipeline_test

import (
	"strings"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
)

const debezium = `{"before":{"id":1},"after":{"id":1,"n":9007199254740993},"source":{"connector":"mysql","db":"shop","table":"orders"},"op":"u","ts_ms":5}`

func TestNewDeliveryReadsEveryForm(t *testing.T) {
	cases := []struct {
		name          string
		record        pipeline.Record
		op            pipeline.Op
		table         string
		before, after string
	}{
		{"a change of ours", pipeline.Record{Table: "shop.orders", Source: "db", Value: []byte(debezium)}, 'u', "shop.orders", `{"id":1}`, `{"id":1,"n":9007199254740993}`},
		{"a foreign change", pipeline.Record{Value: []byte(debezium)}, 'u', "shop.orders", `{"id":1}`, `{"id":1,"n":9007199254740993}`},
		{"a foreign change with its schema", pipeline.Record{Value: []byte(`{"schema":{"type":"struct"},"payload":` + debezium + `}`)}, 'u', "shop.orders", `{"id":1}`, `{"id":1,"n":9007199254740993}`},
		{"spaces and another order", pipeline.Record{Table: "a.b", Source: "db", Value: []byte(" {\n\"op\" : \"c\" , \"after\" : {\"x\":\"}\\\"{\"} , \"before\" : null } ")}, 'c', "a.b", "", `{"x":"}\"{"}`},
		{"an insert", pipeline.Record{Table: "a.b", Value: []byte(`{"before":null,"after":{"a":1},"op":"c"}`)}, 'c', "a.b", "", `{"a":1}`},
		{"a delete", pipeline.Record{Table: "a.b", Key: []byte(`{"a":1}`), Value: []byte(`{"before":{"a":1,"b":2},"after":null,"op":"d"}`)}, 'd', "a.b", `{"a":1,"b":2}`, ""},
		{"a delete without image", pipeline.Record{Table: "a.b", Key: []byte(`{"a":1}`), Value: []byte(`{"before":null,"after":null,"op":"d"}`)}, 'd', "a.b", `{"a":1}`, ""},
		{"a truncation", pipeline.Record{Table: "a.b", Value: []byte(`{"before":null,"after":null,"op":"t"}`)}, 't', "a.b", "", ""},
		{"a tombstone", pipeline.Record{Key: []byte(`{"schema":1,"payload":{"id":4}}`)}, 'd', "", `{"id":4}`, ""},
		{"a tombstone with a plain key", pipeline.Record{Key: []byte(`k`)}, 'd', "", "", ""},
		{"an event", pipeline.Record{Source: "web", Value: []byte(`{"a":1}`)}, 'c', "", "", `{"a":1}`},
		{"an event of ours that looks like a change", pipeline.Record{Source: "app", Value: []byte(debezium)}, 'c', "", "", debezium},
		{"a foreign event with an op", pipeline.Record{Value: []byte(`{"op":"d","after":1}`)}, 'c', "", "", `{"op":"d","after":1}`},
		{"text", pipeline.Record{Value: []byte(`no json`)}, 'c', "", "", ""},
		{"a list", pipeline.Record{Value: []byte(`[1]`)}, 'c', "", "", ""},
		{"broken JSON", pipeline.Record{Value: []byte(`{"a":`)}, 'c', "", "", ""},
		{"an empty value", pipeline.Record{Value: []byte{}}, 'c', "", "", ""},
	}
	for _, c := range cases {
		d, err := pipeline.NewDelivery(c.record, 0)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d.Op != c.op || d.Table != c.table || string(d.Before.JSON()) != c.before || string(d.After.JSON()) != c.after {
			t.Errorf("%s: got %s %q before %s after %s, want %s %q %s %s", c.name, d.Op, d.Table, d.Before.JSON(), d.After.JSON(), c.op, c.table, c.before, c.after)
		}
	}
}

func TestNewDeliveryRefusesABrokenChange(t *testing.T) {
	cases := map[string]string{
		`{"before":null,"after":{"a":1}`:        "cut off",
		`{"before":null,"after":{"a":1}}`:       "names no operation",
		`{"after":{"a":1},"op":"x"}`:            `unknown operation "x"`,
		`{"before":null,"after":null,"op":"u"}`: "no after image",
		`[]`:                                    "not a JSON object",
		`{"op":"c","after":{"a":1}} {}`:         "more text follows",
	}
	for value, want := range cases {
		_, err := pipeline.NewDelivery(pipeline.Record{Table: "a.b", Source: "db", Value: []byte(value)}, 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", value, err, want)
		}
	}
}

func TestRowKeepsDigitsAndFindsFields(t *testing.T) {
	r := pipeline.NewRow([]byte(`{"n":18446744073709551615,"n\u0061me":"x","d":1,"d":2}`))
	for name, want := range map[string]string{"n": "18446744073709551615", "name": `"x"`, "d": "2"} {
		if got, ok, err := r.Field(name); string(got) != want || !ok || err != nil {
			t.Errorf("%s: got %s, %v, %v, want %s", name, got, ok, err, want)
		}
	}
	if _, ok, err := r.Field("gone"); ok || err != nil {
		t.Errorf("a missing field: got %v, %v", ok, err)
	}
	fields, err := r.Fields()
	if err != nil || len(fields) != 3 {
		t.Errorf("got %v, %v, want three fields", fields, err)
	}
}

func TestVersionCarriesEpochAndStamp(t *testing.T) {
	r := pipeline.Record{Stamp: 1_790_000_000_000_000}
	d, err := pipeline.NewDelivery(r, pipeline.MaxEpoch)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(pipeline.MaxEpoch)<<52 | 1_790_000_000_000_000; d.Version != want {
		t.Errorf("got %x, want %x", d.Version, want)
	}
	if d.Version > 1<<63-1 {
		t.Errorf("%x does not fit the signed versions of Elasticsearch", d.Version)
	}
}

func BenchmarkNewDelivery(b *testing.B) {
	r := pipeline.Record{Table: "shop.orders", Source: "db", Key: []byte(`{"id":1}`), Value: []byte(debezium)}
	b.ReportAllocs()
	b.SetBytes(int64(len(r.Value)))
	for b.Loop() {
		if _, err := pipeline.NewDelivery(r, 0); err != nil {
			b.Fatal(err)
		}
	}
}
