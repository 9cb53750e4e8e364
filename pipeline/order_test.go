package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// second is an instant so many seconds after a fixed one, in µs.
func second(n float64) int64 {
	return time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC).UnixMicro() + int64(n*1e6)
}

// tick is a record of the given name, event time and append stamp, in seconds.
func tick(name string, partition int32, at, stamp float64) pipeline.Record {
	return pipeline.Record{Partition: partition, Value: []byte(name), Time: second(at), Stamp: second(stamp), Source: "src"}
}

func bound(d time.Duration, change ...func(*pipeline.OrderConfig)) func(*pipeline.SinkEntry) {
	return func(e *pipeline.SinkEntry) {
		e.Order = &pipeline.OrderConfig{MaxOutOfOrder: d, Per: "stream", By: "auto", Late: "side", Implausible: "clamp", Memory: 16 << 20, Future: 5 * time.Minute}
		for _, f := range change {
			f(e.Order)
		}
	}
}

func TestOrderedSinkSeesEventTimeAndKeepsTheLateAside(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1,
		tick("a", 0, 3, 3), tick("b", 0, 7, 7), tick("c", 0, 5, 8), tick("d", 0, 20, 20), tick("late", 0, 6, 21), tick("e", 0, 19, 22))
	var d destination
	once(t, c, sinkFile(sinkEntry("a", memory{to: &d}, bound(5*time.Second))))
	if got := values(d.all()); got != "a c b e d" {
		t.Errorf("delivered %s, want a c b e d", got)
	}
	late := contents(t, c, pipeline.LateStream("p", "a"))[0]
	if len(late) != 1 || string(late[0].Value) != "late" {
		t.Fatalf("got %v among the late ones, want one", late)
	}
	// W was 20 - 5 = 15, the record's time 6.
	if got := headerOf(late[0], pipeline.HeaderLateness); got != "9000000" {
		t.Errorf("lateness %s, want 9000000", got)
	}
	if got := headerOf(late[0], pipeline.HeaderWatermark); got != fmt.Sprint(second(15)) {
		t.Errorf("watermark %s, want %d", got, second(15))
	}
	if headerOf(late[0], pipeline.HeaderOriginOffset) != "4" || headerOf(late[0], pipeline.HeaderReason) == "" {
		t.Errorf("a late record without its origin: %v", late[0].Headers)
	}
}

// TestPartitionsMergeByAppendStamp gives a sink two partitions, one far ahead, whose
// times only the append stamps put into their true order.
func TestPartitionsMergeByAppendStamp(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var records []pipeline.Record
	for i := range 50 {
		records = append(records, tick(fmt.Sprintf("a%d", i), 0, float64(i), float64(i)))
	}
	for i := range 50 {
		records = append(records, tick(fmt.Sprintf("b%d", i), 1, float64(i)+0.5, float64(i)+0.5))
	}
	fill(t, c, "numbers", 2, records...)
	var d destination
	// With no room for disorder any other order of reading would make records late.
	once(t, c, sinkFile(sinkEntry("a", memory{to: &d}, bound(0))))
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i))
	}
	if got := values(d.all()); got != strings.Join(want, " ") {
		t.Errorf("delivered %s", got)
	}
	if late := contents(t, c, pipeline.LateStream("p", "a")); late != nil {
		t.Errorf("%d records were late", len(late[0]))
	}
}

func TestChangesKeepTheOrderOfTheirSource(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	change := func(name string, at, stamp float64) pipeline.Record {
		r := tick(fmt.Sprintf(`{"after":{"v":%q},"op":"c"}`, name), 0, at, stamp)
		r.Table = "shop.orders"
		return r
	}
	fill(t, c, "numbers", 1, change("v1", 100, 100), change("v2", 95, 101), change("v3", 103, 102), change("v4", 10, 103))
	var d destination
	once(t, c, sinkFile(sinkEntry("a", memory{to: &d}, bound(time.Second))))
	var got []string
	for _, r := range d.all() {
		got = append(got, string(r.After.JSON()))
	}
	if want := `{"v":"v1"} {"v":"v2"} {"v":"v3"} {"v":"v4"}`; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	err := worker(t, sinkFile(sinkEntry("b", memory{to: &d}, bound(time.Second, func(o *pipeline.OrderConfig) { o.By = "event" }))),
		open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != "order-inverts-changes" {
		t.Errorf("got %v, want order-inverts-changes", err)
	}
}

// TestSilenceReleasesTheLastRecords runs live: nothing follows the last record, but the
// source's frontier says so.
func TestSilenceReleasesTheLastRecords(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var d destination
	f := sourceFile(script{run: func(ctx context.Context, _ pipeline.Position, out pipeline.Emitter) error {
		for i := range 5 {
			r := pipeline.Record{Value: fmt.Appendf(nil, "r%d", i), Time: time.Now().UnixMicro(), Position: fmt.Sprint(i)}
			if err := out.Emit(ctx, []pipeline.Record{r}, ""); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &d}, bound(500*time.Millisecond, func(o *pipeline.OrderConfig) { o.IdleAfter = time.Second }))}
	w := worker(t, f, open(t, c), pipeline.WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "all five are delivered", func() bool { return d.count() == 5 })
	cancel()
	<-ended
	if got := values(d.all()); got != "r0 r1 r2 r3 r4" {
		t.Errorf("delivered %s", got)
	}
}

// TestStopFlushesNothingThatWaits keeps C11: what the reorderer holds at a stop is not
// delivered before its time, and comes after the next start.
func TestStopFlushesNothingThatWaits(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	began := time.Now().UnixMicro()
	recent := func(name string, at, stamp float64) pipeline.Record {
		r := tick(name, 0, at, stamp)
		r.Time, r.Stamp = r.Time-second(0)+began, r.Stamp-second(0)+began
		return r
	}
	fill(t, c, "numbers", 1, recent("a", 1, 1), recent("b", 10, 10), recent("c", 9, 11))
	var d destination
	f := sinkFile(sinkEntry("a", memory{to: &d}, bound(5*time.Second, func(o *pipeline.OrderConfig) { o.IdleAfter, o.Hold = time.Hour, time.Hour })))
	w := worker(t, f, open(t, c), pipeline.WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "the first is delivered", func() bool { return d.count() == 1 })
	cancel()
	<-ended
	if got := values(d.all()); got != "a" {
		t.Fatalf("a stop delivered %s, want a", got)
	}
	fill(t, c, "numbers", 1, recent("d", 16, 12))
	once(t, c, f)
	if got := values(d.all()); got != "a c b d" {
		t.Errorf("delivered %s, want a c b d", got)
	}
	if late := contents(t, c, pipeline.LateStream("p", "a")); late != nil {
		t.Errorf("%d records were late", len(late[0]))
	}
}

func TestRecordsWithoutStampsAreNotOrdered(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1)
	produce(t, c, "numbers", "foreign")
	var d destination
	err := worker(t, sinkFile(sinkEntry("a", memory{to: &d}, bound(time.Second))), open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != "no-append-stamp" {
		t.Errorf("got %v, want no-append-stamp", err)
	}
	once(t, c, sinkFile(sinkEntry("b", memory{to: &d})))
	if got := values(d.all()); got != "foreign" {
		t.Errorf("unordered: delivered %s", got)
	}
}
