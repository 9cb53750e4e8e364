package sinktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/pipeline"
)

// JSON returns the row as it stands in a record.
func (r Row) JSON() []byte {
	text, err := json.Marshal(struct {
		ID string `json:"id"`
		V  string `json:"v"`
	}{r.ID, r.V})
	if err != nil {
		panic(err)
	}
	return text
}

// ParseRow is the inverse of JSON.
func ParseRow(t testing.TB, text []byte) Row {
	t.Helper()
	var r struct{ ID, V string }
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return Row{r.ID, r.V}
}

// event is the record at the given offset that holds a row and is no change.
func event(offset int64, r Row) pipeline.Delivery {
	d := pipeline.Delivery{
		Record: pipeline.Record{
			Stream: Stream, Offset: offset, Value: r.JSON(),
			Time: Stamp + offset, Stamp: Stamp + offset,
			Source: "suite", Position: fmt.Sprint(offset),
		},
		Op: pipeline.OpCreate, After: pipeline.NewRow(r.JSON()),
	}
	d.Version = d.Record.Version(0)
	return d
}

// change is the record at the given offset that changes before to after; an empty id
// stands for an absent image.
func change(offset int64, op pipeline.Op, before, after Row) pipeline.Delivery {
	d := event(offset, after)
	d.Op, d.Table = op, Table
	d.Before, d.After = pipeline.NewRow(nil), pipeline.NewRow(nil)
	images := map[string]json.RawMessage{"before": []byte("null"), "after": []byte("null")}
	id := before.ID
	if before.ID != "" {
		images["before"] = before.JSON()
		d.Before = pipeline.NewRow(images["before"])
	}
	if after.ID != "" {
		images["after"] = after.JSON()
		d.After = pipeline.NewRow(images["after"])
		id = after.ID
	}
	d.Key = fmt.Appendf(nil, `{"id":%q}`, id)
	d.Value = fmt.Appendf(nil, `{"before":%s,"after":%s,"op":%q}`, images["before"], images["after"], op.String())
	return d
}

func put(offset int64, id, v string) pipeline.Delivery {
	return change(offset, pipeline.OpUpdate, Row{id, "before"}, Row{id, v})
}

func remove(offset int64, id string) pipeline.Delivery {
	return change(offset, pipeline.OpDelete, Row{id, "last"}, Row{})
}

// things returns n deliveries of n rows, and the rows: the input that is right for both
// kinds of sink.
func things(s Suite, n int) (batch []pipeline.Delivery, rows []Row) {
	for i := range n {
		r := Row{fmt.Sprintf("thing-%04d", i), fmt.Sprintf("value %d", i)}
		rows = append(rows, r)
		batch = append(batch, record(s, int64(i), r))
	}
	return batch, rows
}

// record returns the record that brings a row: a change for sinks that keep rows.
func record(s Suite, offset int64, r Row) pipeline.Delivery {
	if s.Keeps == Every {
		return event(offset, r)
	}
	return change(offset, pipeline.OpCreate, Row{}, r)
}

// want fails the test unless the destination holds exactly the rows.
func want(t *testing.T, s Suite, d Destination, rows ...Row) {
	t.Helper()
	got := d.Contents(t)
	if s.Keeps == Latest {
		got, rows = sorted(got), sorted(rows)
	}
	if len(got) == 0 && len(rows) == 0 {
		return
	}
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Fatalf("the destination does not hold what was written (-want +got):\n%s", diff)
	}
}

func sorted(rows []Row) []Row {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int {
		return strings.Compare(a.ID+"\x00"+a.V, b.ID+"\x00"+b.V)
	})
	return rows
}
