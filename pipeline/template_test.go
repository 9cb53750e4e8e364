package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// order is a change of shop.orders at a fixed event time.
func order(t *testing.T, key, before, after string) *pipeline.Delivery {
	t.Helper()
	op := `"u"`
	d, err := pipeline.NewDelivery(pipeline.Record{
		Stream: "shop.changes", Partition: 3, Table: "shop.orders", Source: "shop-db", Key: []byte(key),
		Value: []byte(`{"before":` + before + `,"after":` + after + `,"source":{},"op":` + op + `,"ts_ms":1}`),
		Time:  time.Date(2026, 9, 1, 23, 4, 5, 0, time.UTC).UnixMicro(),
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

func TestTemplateRenders(t *testing.T) {
	d := order(t, `{"id":18446744073709551615}`, `{"id":7,"name":"old"}`,
		`{"id":18446744073709551615,"name":"a \"b\" é","ok":true,"price":1.50,"op":"mine","odd name":"x","@t":"at","dd":"D"}`)
	cases := map[string]string{
		"plain":                          "plain",
		"shop-{table}":                   "shop-orders",
		"{db}.{table}":                   "shop.orders",
		"{stream}/{partition}/{source}":  "shop.changes/3/shop-db",
		"{sink}":                         "search",
		"{key}":                          "18446744073709551615",
		"order:{id}":                     "order:18446744073709551615",
		"{name}":                         `a "b" é`,
		"{ok} {price}":                   "true 1.50",
		"{op} {row.op}":                  "u mine",
		"{row.odd name}{@t}{row.dd}{dd}": "xatD01",
		"{yyyy-MM-dd}/{HH}":              "2026-09-01/23",
		"{yyyyMMddHHmmss}":               "20260901230405",
		"{{{name}}}":                     `{a "b" é}`,
		"{{id}}":                         "{id}",
	}
	for text, want := range cases {
		tmpl, err := pipeline.ParseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := tmpl.Render(d, &d.After, "search")
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
		if tmpl.String() != text {
			t.Errorf("String: got %q, want %q", tmpl.String(), text)
		}
	}
}

func TestTemplateTellsAChangedPlaceByItsTwoImages(t *testing.T) {
	d := order(t, `{"id":1}`, `{"id":1,"shelf":"a"}`, `{"id":1,"shelf":"b"}`)
	tmpl, err := pipeline.ParseTemplate("{shelf}-{id}")
	if err != nil {
		t.Fatal(err)
	}
	before, err1 := tmpl.Render(d, &d.Before, "")
	after, err2 := tmpl.Render(d, &d.After, "")
	if before != "a-1" || after != "b-1" || err1 != nil || err2 != nil {
		t.Errorf("got %q, %q, %v, %v, want a-1 and b-1", before, after, err1, err2)
	}
}

func TestTemplateRefusesAtParsing(t *testing.T) {
	cases := map[string]string{
		"a{":           "column 2: `{` is never closed",
		"a{b{c}}":      "column 2: `{` is never closed",
		"a}":           "column 2: a `}` without `{`",
		"{}":           "column 1",
		"x-{row.}":     "column 3",
		"{yyyy-MM-DD}": "looks like a date",
		"{yyyy-mm-zz}": "looks like a date",
		"{odd name}":   "{row.odd name}",
		"{1st}":        "{row.1st}",
	}
	for text, want := range cases {
		if _, err := pipeline.ParseTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
	_, err := pipeline.ParseTemplate("out/{stream}/{id}", pipeline.PlaceStream, pipeline.PlaceDate)
	if err == nil || !strings.Contains(err.Error(), "column 14: {id} can't stand here; what can: {stream}, dates such as {yyyy-MM-dd}") {
		t.Errorf("got %v, want a refusal of {id}", err)
	}
}

func TestTemplateRejectsARecordItCanNotName(t *testing.T) {
	d := order(t, `{"id":1}`, `null`, `{"id":1,"note":null,"tags":["a"],"at":{"x":1}}`)
	event, err := pipeline.NewDelivery(pipeline.Record{Stream: "s", Value: []byte(`{"a":1}`)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		text string
		d    *pipeline.Delivery
		row  *pipeline.Row
		want string
	}{
		{"o:{gone}", d, &d.After, `field "gone" is missing`},
		{"o:{note}", d, &d.After, `field "note" is null`},
		{"o:{tags}", d, &d.After, `field "tags" is a list`},
		{"o:{at}", d, &d.After, `field "at" is an object`},
		{"o:{id}", d, &d.Before, "no row here"},
		{"{key}", &event, &event.After, "no key"},
		{"{table}", &event, &event.After, "no change of a table"},
		{"{source}", &event, &event.After, "names no source"},
	}
	for _, c := range cases {
		tmpl, err := pipeline.ParseTemplate(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render(c.d, c.row, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v, want an error with %q", c.text, got, err, c.want)
		}
	}
}

func TestCompositeKeysNeverCollide(t *testing.T) {
	tmpl, err := pipeline.ParseTemplate("{key}")
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{
		`{"a":"a_b","b":"c"}`, `{"a":"a","b":"b_c"}`, `{"a":"a_","b":"b_c"}`, `{"a":"a","b":"_b_c"}`,
		`{"a":"a\\","b":"b"}`, `{"a":"a\\_b","b":""}`, `{"a":"a\\","b":"_b"}`, `{"a":"","b":"a"}`, `{"a":"a","b":""}`,
		`{"a":1,"b":23}`, `{"a":12,"b":3}`,
	}
	seen := map[string]string{}
	for _, k := range keys {
		d := order(t, k, `null`, `{}`)
		got, err := tmpl.Render(d, &d.After, "")
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%s and %s both give %q", k, other, got)
		}
		seen[got] = k
	}
}

func TestKeyOfForeignForms(t *testing.T) {
	cases := map[string]string{
		"plain text":                       "plain text",
		`{"schema":{},"payload":{"id":5}}`: "5",
		`{"id":"x_y"}`:                     "x_y",
		"{broken":                          "{broken",
	}
	for key, want := range cases {
		r := pipeline.Record{Key: []byte(key)}
		if got, err := r.KeyText(); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", key, got, err, want)
		}
	}
}
