package sinktest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
)

// What the kit's records have in common.
const (
	Stream = "shop.changes"
	Table  = "shop.orders"
	// Stamp is the stamp of the record at offset 0; each further one has the next.
	Stamp = int64(1_790_000_000_000_000)
)

// NewEnv returns the surroundings of a sink that reads Stream, which has issued a million
// records.
func NewEnv(t testing.TB) pipeline.SinkEnv {
	return pipeline.SinkEnv{
		Pipeline: "shop", Name: "sink",
		Streams: []pipeline.StreamID{{Name: Stream, ID: "id-of-the-stream"}},
		Highest: func(context.Context) (int64, error) { return Stamp + 1_000_000, nil },
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// Open opens a sink that is closed when the test ends.
func Open(t testing.TB, c pipeline.SinkConfig, env pipeline.SinkEnv) pipeline.Sink {
	t.Helper()
	s, err := c.OpenSink(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Change returns the record at offset that changes a row of Table from before to after,
// each JSON or empty.
func Change(offset int64, op pipeline.Op, before, after string) pipeline.Delivery {
	d := pipeline.Delivery{
		Record: pipeline.Record{Stream: Stream, Offset: offset, Table: Table, Time: Stamp + offset, Stamp: Stamp + offset},
		Op:     op, Before: pipeline.NewRow([]byte(before)), After: pipeline.NewRow([]byte(after)),
	}
	d.Version = d.Record.Version(0)
	return d
}

// Put returns the record at offset that puts a row, given as JSON.
func Put(offset int64, after string) pipeline.Delivery {
	return Change(offset, pipeline.OpUpdate, "", after)
}

// Delete returns the record at offset that deletes a row, given as JSON.
func Delete(offset int64, before string) pipeline.Delivery {
	return Change(offset, pipeline.OpDelete, before, "")
}

// Truncate returns the record at offset that empties Table.
func Truncate(offset int64) pipeline.Delivery { return Change(offset, pipeline.OpTruncate, "", "") }

// Write hands a batch to the sink.
func Write(t testing.TB, s pipeline.Sink, batch ...pipeline.Delivery) {
	t.Helper()
	if err := s.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// UpTo is the checkpoint at which partition 0 of Stream goes on at offset next.
func UpTo(next int64) pipeline.Checkpoint {
	return pipeline.Checkpoint{Offsets: map[pipeline.Partition]int64{{Stream: Stream}: next}}
}

// Flush flushes the sink and fails the test if that fails.
func Flush(t testing.TB, s pipeline.Sink, next int64) {
	t.Helper()
	if err := s.Flush(t.Context(), UpTo(next)); err != nil {
		t.Fatal(err)
	}
}

// WantWaiting fails the test unless Flush fails for now, with all of the words given in
// its error, and the sink's report says the same.
func WantWaiting(t testing.TB, s pipeline.Sink, next int64, words ...string) {
	t.Helper()
	err := s.Flush(t.Context(), UpTo(next))
	wantTransient(t, err)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	if reporter, ok := s.(pipeline.Reporter); ok {
		if r := reporter.Report(); r.Phase != "waiting" || r.Detail != err.Error() {
			t.Errorf("the sink reports %q %q after %v", r.Phase, r.Detail, err)
		}
	}
}

// WantStop fails the test unless err is the StopError of the code, with a fix.
func WantStop(t testing.TB, err error, code string) *pipeline.StopError {
	t.Helper()
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != code || stop.Fix == "" {
		t.Fatalf("got %v, want the StopError %s with a fix", err, code)
	}
	return stop
}

// WantRejected flushes the sink and fails the test unless exactly the records at these
// offsets are rejected. It returns the reasons by offset.
func WantRejected(t testing.TB, s pipeline.Sink, next int64, offsets ...int64) map[int64]string {
	t.Helper()
	err := s.Flush(t.Context(), UpTo(next))
	var rejected *pipeline.RejectedError
	if !errors.As(err, &rejected) {
		t.Fatalf("Flush returned %v, want a RejectedError", err)
	}
	reasons := map[int64]string{}
	for _, r := range rejected.Rejected {
		reasons[r.Delivery.Offset] = r.Reason
	}
	for _, offset := range offsets {
		if reasons[offset] == "" {
			t.Errorf("the record at offset %d is not rejected with a reason: %v", offset, err)
		}
	}
	if len(rejected.Rejected) != len(offsets) {
		t.Errorf("%d records are rejected, want %d: %v", len(rejected.Rejected), len(offsets), reasons)
	}
	return reasons
}
