package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/pipeline"
)

// produce appends values to partition 0 as another program would.
func produce(t *testing.T, c brokers, stream string, values ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, v := range values {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: stream, Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLongRecordsComeWhole(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	random := rand.New(rand.NewPCG(9, 10))
	long := make([]byte, 3_500_000)
	for i := range long {
		long[i] = byte('a' + random.IntN(26))
	}
	var d destination
	// The second source writes between the pieces of the first one's record.
	emit := func(value []byte, n int) script {
		return script{run: func(ctx context.Context, _ pipeline.Position, out pipeline.Emitter) error {
			for i := range n {
				r := pipeline.Record{Key: []byte("k"), Value: value, Time: int64(i + 1), Position: fmt.Sprint(i)}
				if err := out.Emit(ctx, []pipeline.Record{r}, pipeline.Position(fmt.Sprint(i+1))); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	f := sourceFile(emit(long, 3))
	f.Sources = append(f.Sources, pipeline.SourceEntry{Name: "short", Stream: "numbers", Partitions: 1, PartitionBy: "key", Config: emit([]byte("short"), 200)})
	f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &d})}
	once(t, c, f)
	whole, short := 0, 0
	for _, r := range d.all() {
		switch {
		case r.Source == "src" && bytes.Equal(r.Value, long) && r.Position == fmt.Sprint(whole) && len(r.Headers) == 0:
			whole++
		case r.Source == "short" && string(r.Value) == "short":
			short++
		default:
			t.Errorf("got %d bytes from %s at %q with %v", len(r.Value), r.Source, r.Position, r.Headers)
		}
	}
	if whole != 3 || short != 200 {
		t.Errorf("got %d long and %d short records, want 3 and 200", whole, short)
	}
}

// TestCursorInTheMiddleOfALongRecord starts a sink between the pieces of a record, once
// with and once without the earlier ones being kept.
func TestCursorInTheMiddleOfALongRecord(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	piece := func(n int, value string) pipeline.Record {
		r := pipeline.Record{Value: []byte(value), Source: "src", Headers: []pipeline.Header{{Key: pipeline.HeaderChunk, Value: fmt.Appendf(nil, "%d/3/77", n)}}}
		return r
	}
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("x")}, piece(1, "on"), pipeline.Record{Value: []byte("y"), Source: "other"}, piece(2, "et"), piece(3, "wo"),
		pipeline.Record{Value: []byte("z")})
	admin := kadm.NewClient(rawClient(t, c))
	at := func(sink string, offset int64) {
		t.Helper()
		var o kadm.Offsets
		o.Add(kadm.Offset{Topic: "numbers", Partition: 0, At: offset, LeaderEpoch: -1})
		if err := admin.CommitAllOffsets(t.Context(), "daybook.sink.p."+sink, o); err != nil {
			t.Fatal(err)
		}
	}
	at("a", 3)
	var a, b destination
	once(t, c, sinkFile(sinkEntry("a", memory{to: &a})))
	if got := values(a.all()); got != "onetwo z" {
		t.Errorf("delivered %s, want onetwo z", got)
	}
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: "numbers", Partition: 0, At: 3, LeaderEpoch: -1})
	if _, err := admin.DeleteRecords(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	at("b", 3)
	once(t, c, sinkFile(sinkEntry("b", memory{to: &b})))
	if got := values(b.all()); got != "z" {
		t.Errorf("delivered %s, want z", got)
	}
	dead := contentsFrom(t, c, pipeline.DeadStream("p", "b"))
	if len(dead) != 2 || !strings.Contains(headerOf(dead[0], pipeline.HeaderReason), "no longer kept") {
		t.Errorf("got %d dead letters, want the two pieces that are left", len(dead))
	}
}

func contentsFrom(t *testing.T, c brokers, stream string) []*kgo.Record {
	return contents(t, c, stream)[0]
}

func rawClient(t *testing.T, c brokers) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestExpiredCursorStopsTheSink(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("a")}, pipeline.Record{Value: []byte("b")}, pipeline.Record{Value: []byte("c")})
	admin := kadm.NewClient(rawClient(t, c))
	offset := func(at int64) kadm.Offsets {
		var o kadm.Offsets
		o.Add(kadm.Offset{Topic: "numbers", Partition: 0, At: at, LeaderEpoch: -1})
		return o
	}
	run := func() error {
		var d destination
		return worker(t, sinkFile(sinkEntry("a", memory{to: &d})), open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	}
	stopped := func(code string) {
		t.Helper()
		err := run()
		var stop *pipeline.StopError
		if !errors.As(err, &stop) || stop.Code != code || stop.Fix == "" || !strings.Contains(stop.Where, "numbers") {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	if err := admin.CommitAllOffsets(t.Context(), "daybook.sink.p.a", offset(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.DeleteRecords(t.Context(), offset(2)); err != nil {
		t.Fatal(err)
	}
	stopped("journal-gap")
	var renamed destination // what the stop says to do
	if err := worker(t, sinkFile(sinkEntry("b", memory{to: &renamed})), open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context()); err != nil || values(renamed.all()) != "c" {
		t.Errorf("under another name it delivers %s: %v", values(renamed.all()), err)
	}
	if err := admin.CommitAllOffsets(t.Context(), "daybook.sink.p.a", offset(9)); err != nil {
		t.Fatal(err)
	}
	stopped("journal-shorter")
}

func TestReplacedStreamStopsTheSink(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var d destination
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("a")})
	f := sinkFile(sinkEntry("a", memory{to: &d}))
	once(t, c, f)
	admin := kadm.NewClient(rawClient(t, c))
	if _, err := admin.DeleteTopic(t.Context(), "numbers"); err != nil {
		t.Fatal(err)
	}
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("b")}, pipeline.Record{Value: []byte("c")})
	// Kafka forgets the offsets of a deleted topic; what stays is what others kept.
	err := worker(t, f, open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	var stop *pipeline.StopError
	if err != nil && (!errors.As(err, &stop) || stop.Code != "stream-replaced") {
		t.Fatal(err)
	}
	if err == nil && values(d.all()) != "a b c" {
		t.Errorf("delivered %s: neither stopped nor began anew", values(d.all()))
	}
}

// A stream that is made again under a sink that runs is not waited for at the old one's end.
func TestRunningSinkNoticesAReplacedStream(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var d destination
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("a")}, pipeline.Record{Value: []byte("b")}, pipeline.Record{Value: []byte("c")})
	w := worker(t, sinkFile(sinkEntry("a", memory{to: &d})), open(t, c), pipeline.WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "the first stream is delivered", func() bool { return values(d.all()) == "a b c" && w.Status().Sinks[0].Behind == 0 })
	admin := kadm.NewClient(rawClient(t, c))
	if _, err := admin.DeleteTopic(t.Context(), "numbers"); err != nil {
		t.Fatal(err)
	}
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("d")})
	eventually(t, "the sink begins the new stream, or stops", func() bool {
		return values(d.all()) == "a b c d" || w.Status().Sinks[0].Code == "stream-replaced"
	})
	if _, err := admin.DeleteTopic(t.Context(), "numbers"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a sink whose stream is gone is not ready", func() bool { return !w.Status().Ready })
	cancel()
	<-ended
}

// TestSinkThatIsDownHoldsLittle lets a backlog build up before a sink that refuses, and
// looks at how much of it was read.
func TestSinkThatIsDownHoldsLittle(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var emitted atomic.Int64
	big := strings.Repeat("x", 18<<10)
	f := sourceFile(script{run: func(ctx context.Context, _ pipeline.Position, out pipeline.Emitter) error {
		for i := range 2500 { // 45 MiB
			r := pipeline.Record{Value: []byte(big), Time: 1, Position: fmt.Sprint(i)}
			if err := out.Emit(ctx, []pipeline.Record{r}, pipeline.Position(fmt.Sprint(i))); err != nil {
				return err
			}
			emitted.Add(1)
		}
		return nil
	}})
	once(t, c, f)
	var d destination
	var down atomic.Bool
	down.Store(true)
	d.fault = func([]pipeline.Delivery) error {
		if down.Load() {
			return errors.New("connection refused")
		}
		return nil
	}
	w := worker(t, sinkFile(sinkEntry("a", memory{to: &d})), open(t, c), pipeline.WorkerOptions{Once: true})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	eventually(t, "the sink has tried a few times", func() bool { return w.Status().Sinks[0].Retries > 3 })
	if read := w.Status().Sinks[0].Read; read > 4096 {
		t.Errorf("%d records were read while nothing could be delivered", read)
	}
	down.Store(false)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if d.count() != 2500 {
		t.Errorf("got %d records, want 2500", d.count())
	}
}

func TestOnlyNamesWhatRuns(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("a")})
	var a, b destination
	f := sinkFile(sinkEntry("a", memory{to: &a}), sinkEntry("b", memory{to: &b}))
	if err := worker(t, f, open(t, c), pipeline.WorkerOptions{Once: true, Only: []string{"b"}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.count() != 0 || b.count() != 1 {
		t.Errorf("got %d and %d, want 0 and 1", a.count(), b.count())
	}
	if _, err := pipeline.NewWorker(f, open(t, c), pipeline.WorkerOptions{Only: []string{"c"}}); err == nil || !strings.Contains(err.Error(), `no source or sink "c"`) {
		t.Errorf("got %v, want an error that names c", err)
	}
}

// TestWorkersShareASink runs two workers of one file on a remote journal: together they
// deliver each record once, and one takes over when the other is told to stop.
func TestWorkersShareASink(t *testing.T) {
	for _, order := range []bool{false, true} {
		t.Run(fmt.Sprintf("order=%v", order), func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			var emitted atomic.Int64
			once(t, c, sourceFile(script{run: counting(3000, &emitted)}, partitions(4)))
			var d destination
			entry := sinkEntry("a", memory{to: &d})
			if order {
				bound(time.Second)(&entry)
			}
			f := sinkFile(entry)
			start := func() (context.CancelFunc, chan error) {
				w := worker(t, f, open(t, c, remote), pipeline.WorkerOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				return cancel, ended
			}
			stop1, ended1 := start()
			stop2, ended2 := start()
			if !order {
				eventually(t, "all are delivered", func() bool { return d.count() >= 3000 })
			}
			stop1()
			<-ended1
			once(t, c, sourceFile(script{run: counting(4000, &emitted)}, partitions(4)))
			if !order {
				eventually(t, "the other goes on", func() bool { return d.count() >= 4000 })
			}
			stop2()
			<-ended2
			once(t, c, f, remote)
			checkNumbersOnce(t, d.all(), 4000)
		})
	}
}

// A stream all of which has expired is where an idle source, or a monthly run, finds it.
func TestASourceGoesOnWhereItsWholeStreamHasExpired(t *testing.T) {
	for name, window := range map[string]time.Duration{"by position": 0, "by id": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			var emitted atomic.Int64
			run := func(total int) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				w := worker(t, sourceFile(script{window: window, run: counting(total, &emitted)}), open(t, c), pipeline.WorkerOptions{Once: true})
				if err := w.Run(ctx); err != nil {
					t.Fatal(err)
				}
			}
			run(10)
			var o kadm.Offsets
			o.AddOffset("numbers", 0, 10, -1)
			if _, err := kadm.NewClient(rawClient(t, c)).DeleteRecords(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			run(15)
			if got := contents(t, c, "numbers")[0]; len(got) != 5 || string(got[0].Value) != string(number(10).Value) {
				t.Errorf("%d records came behind what had expired, want those from 10 to 14", len(got))
			}
		})
	}
}

func checkNumbersOnce(t *testing.T, rows []pipeline.Delivery, want int) {
	t.Helper()
	seen := map[string]int{}
	for i := range rows {
		seen[rows[i].Position]++
	}
	for n := range want {
		if got := seen[fmt.Sprint(n)]; got != 1 {
			t.Errorf("number %d was delivered %d times", n, got)
		}
	}
}
