package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

// destination is where scripted sinks write to; it outlives them. With cursor it keeps
// the checkpoint beside its data, in one step.
type destination struct {
	mu      sync.Mutex
	rows    []pipeline.Delivery // durable, in order
	cursor  *pipeline.Checkpoint
	flushes int
	// fault, if set, may refuse a flush.
	fault func(pending []pipeline.Delivery) error
}

func (d *destination) all() []pipeline.Delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]pipeline.Delivery(nil), d.rows...)
}

func (d *destination) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rows)
}

// memory is the configuration of a scripted sink.
type memory struct {
	to     *destination
	resume bool
	// rollAt makes the sink one that rolls after so many records.
	rollAt int
	env    *pipeline.SinkEnv
	// refuses makes it one that can't be opened.
	refuses bool
}

func (m memory) Fields(*configs.Fields) {}

func (m memory) Into(string) error { return errors.New("no shadow") }

func (m memory) OpenSink(env pipeline.SinkEnv) (pipeline.Sink, error) {
	if m.env != nil {
		*m.env = env
	}
	if m.refuses {
		return nil, errors.New("connection refused")
	}
	s := &memorySink{m: m}
	switch {
	case m.rollAt > 0:
		return rollingSink{resumingSink{s}}, nil
	case m.resume:
		return resumingSink{s}, nil
	}
	return s, nil
}

type memorySink struct {
	m       memory
	pending []pipeline.Delivery
}

func (s *memorySink) Write(_ context.Context, batch []pipeline.Delivery) error {
	s.pending = append(s.pending, batch...)
	return nil
}

func (s *memorySink) Flush(_ context.Context, c pipeline.Checkpoint) error {
	d := s.m.to
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		err := d.fault(s.pending)
		var rejected *pipeline.RejectedError
		if errors.As(err, &rejected) {
			bad := map[string]bool{}
			for _, r := range rejected.Rejected {
				bad[fmt.Sprint(r.Delivery.Stream, r.Delivery.Partition, r.Delivery.Offset)] = true
			}
			var rest []pipeline.Delivery
			for _, p := range s.pending {
				if !bad[fmt.Sprint(p.Stream, p.Partition, p.Offset)] {
					rest = append(rest, p)
				}
			}
			s.pending = rest
			return err
		}
		if err != nil {
			return err
		}
	}
	d.flushes++
	d.rows = append(d.rows, s.pending...)
	s.pending = nil
	if s.m.resume || s.m.rollAt > 0 {
		// Those of partitions that another session had stay, as at any destination.
		offsets := maps.Clone(c.Offsets)
		if d.cursor != nil {
			for p, o := range d.cursor.Offsets {
				if _, ours := offsets[p]; !ours {
					offsets[p] = o
				}
			}
		}
		c.Offsets = offsets
		d.cursor = &c
	}
	return nil
}

func (s *memorySink) Close() error { return nil }

type resumingSink struct{ *memorySink }

func (s resumingSink) Resume(context.Context) (pipeline.Checkpoint, bool, error) {
	s.m.to.mu.Lock()
	defer s.m.to.mu.Unlock()
	if s.m.to.cursor == nil {
		return pipeline.Checkpoint{}, false, nil
	}
	c := *s.m.to.cursor
	c.Offsets = maps.Clone(c.Offsets) // the caller's to change; the destination keeps all
	return c, true, nil
}

type rollingSink struct{ resumingSink }

func (s rollingSink) Due(int64) bool { return len(s.pending) >= s.m.rollAt }

var defaultBatch = pipeline.BatchConfig{Records: 100, Bytes: 1 << 20, Time: 20 * time.Millisecond}

// sinkEntry is a sink of the stream numbers.
func sinkEntry(name string, m memory, change ...func(*pipeline.SinkEntry)) pipeline.SinkEntry {
	e := pipeline.SinkEntry{Name: name, Streams: []string{"numbers"}, Batch: defaultBatch, Kind: "memory", Config: m}
	for _, f := range change {
		f(&e)
	}
	return e
}

func sinkFile(sinks ...pipeline.SinkEntry) *pipeline.File {
	return &pipeline.File{Version: 1, Pipeline: "p", Sinks: sinks}
}

// fill appends records to a stream of the given partitions, with stamps as given or
// else the time.
func fill(t *testing.T, c brokers, stream string, parts int, records ...pipeline.Record) {
	t.Helper()
	j := open(t, c)
	if _, err := j.Ensure(t.Context(), stream, parts, 1); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, r := range records {
		k := &kgo.Record{Topic: stream, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMicro(r.Time)}
		stamp := r.Stamp
		if stamp == 0 {
			stamp = time.Now().UnixMicro() + int64(i)
		}
		add := func(key, value string) {
			if value != "" {
				k.Headers = append(k.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
			}
		}
		add(pipeline.HeaderStamp, strconv.FormatInt(stamp, 10))
		if r.Time%1000 != 0 {
			add(pipeline.HeaderTime, strconv.FormatInt(r.Time, 10))
		}
		add(pipeline.HeaderSource, r.Source)
		add(pipeline.HeaderTable, r.Table)
		add(pipeline.HeaderPosition, r.Position)
		for _, h := range r.Headers {
			add(h.Key, string(h.Value))
		}
		if err := client.ProduceSync(t.Context(), k).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func once(t *testing.T, c brokers, f *pipeline.File, change ...func(*pipeline.JournalOptions)) {
	t.Helper()
	if err := worker(t, f, open(t, c, change...), pipeline.WorkerOptions{Once: true}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func values(rows []pipeline.Delivery) string {
	var out []string
	for i := range rows {
		out = append(out, string(rows[i].Value))
	}
	return strings.Join(out, " ")
}

func TestOneRunMovesEverythingThrough(t *testing.T) {
	for _, mode := range []struct {
		name   string
		change func(*pipeline.JournalOptions)
	}{{"embedded", func(*pipeline.JournalOptions) {}}, {"remote", remote}} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			var emitted atomic.Int64
			var a, b destination
			f := sourceFile(script{run: counting(3000, &emitted)}, partitions(3))
			f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &a}), sinkEntry("b", memory{to: &b, resume: true})}
			once(t, c, f, mode.change)
			checkRows(t, a.all(), 3000)
			checkRows(t, b.all(), 3000)
			once(t, c, f, mode.change)
			if a.count() != 3000 || b.count() != 3000 {
				t.Errorf("a second run delivered %d and %d more", a.count()-3000, b.count()-3000)
			}
		})
	}
}

// checkRows fails unless the rows are the numbers, each once, each partition's rising.
func checkRows(t *testing.T, rows []pipeline.Delivery, want int) {
	t.Helper()
	seen, last := map[string]int{}, map[int32]int64{}
	for i := range rows {
		r := &rows[i]
		seen[r.Position]++
		if r.Offset < last[r.Partition] {
			t.Errorf("partition %d: offset %d after %d", r.Partition, r.Offset, last[r.Partition])
		}
		last[r.Partition] = r.Offset
	}
	for n := range want {
		if got := seen[strconv.Itoa(n)]; got != 1 {
			t.Errorf("number %d was delivered %d times", n, got)
		}
	}
	if len(seen) != want {
		t.Errorf("got %d numbers, want %d", len(seen), want)
	}
}

// TestKilledWorkerDeliversEachRecordOnce kills source and sink together, at random
// moments; the destination holds the cursor.
func TestKilledWorkerDeliversEachRecordOnce(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	random := rand.New(rand.NewPCG(5, 6))
	const total = 5000
	var emitted atomic.Int64
	plain, ordered, rolled := destination{}, destination{}, destination{}
	order := &pipeline.OrderConfig{MaxOutOfOrder: 20 * time.Millisecond, Late: "side", Memory: 1 << 20}
	lives := 0
	for {
		lives++
		var wire cable
		j := open(t, c, wire.plug)
		p := &paced{until: int64(1 + random.IntN(160)), reached: make(chan struct{})}
		f := sourceFile(script{run: func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
			if err := counting(total, &emitted)(ctx, from, p.around(out)); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}}, partitions(2))
		f.Sinks = []pipeline.SinkEntry{
			sinkEntry("plain", memory{to: &plain, resume: true}),
			sinkEntry("ordered", memory{to: &ordered, resume: true}, func(e *pipeline.SinkEntry) { e.Order = order }),
			sinkEntry("rolled", memory{to: &rolled, rollAt: 70}, func(e *pipeline.SinkEntry) { e.Order = order }),
		}
		w := worker(t, f, j, pipeline.WorkerOptions{Grace: time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-p.reached:
		case <-time.After(5 * time.Second): // all is emitted
		}
		wire.sever()
		cancel()
		<-ended
		j.Close()
		if emitted.Load() == total || lives == 25 {
			break // what is left comes in one go
		}
	}
	f := sourceFile(script{run: counting(total, &emitted)}, partitions(2))
	f.Sinks = []pipeline.SinkEntry{
		sinkEntry("plain", memory{to: &plain, resume: true}),
		sinkEntry("ordered", memory{to: &ordered, resume: true}, func(e *pipeline.SinkEntry) { e.Order = order }),
		sinkEntry("rolled", memory{to: &rolled, rollAt: 70}, func(e *pipeline.SinkEntry) { e.Order = order }),
	}
	once(t, c, f)
	t.Logf("%d lives", lives)
	checkRows(t, plain.all(), total)
	for name, d := range map[string]*destination{"ordered": &ordered, "rolled": &rolled} {
		seen := map[string]int{}
		var last int64
		for _, r := range d.all() {
			seen[r.Position]++
			if r.Time < last {
				t.Errorf("%s: time %d after %d", name, r.Time, last)
			}
			last = r.Time
		}
		for _, k := range contents(t, c, pipeline.LateStream("p", name))[0] {
			seen[headerOf(k, pipeline.HeaderPosition)]++
		}
		for n := range total {
			if got := seen[strconv.Itoa(n)]; got != 1 {
				t.Errorf("%s: number %d was delivered %d times", name, n, got)
			}
		}
	}
}

func TestSinkThatFailsAtRandomLosesNothing(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var emitted atomic.Int64
	var d destination
	random := rand.New(rand.NewPCG(7, 8))
	d.fault = func([]pipeline.Delivery) error {
		if random.IntN(3) == 0 {
			return errors.New("429 too many requests")
		}
		return nil
	}
	f := sourceFile(script{run: counting(2000, &emitted)})
	f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &d})}
	once(t, c, f)
	checkRows(t, d.all(), 2000)
}

func TestRefusedRecordsAreDeadLetters(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1,
		pipeline.Record{Value: []byte(`{"n":1}`), Key: []byte("k"), Position: "1", Source: "src", Time: 1_000_000},
		pipeline.Record{Value: []byte(`{"n":2}`)},
		pipeline.Record{Value: []byte(`no json`)},
		pipeline.Record{Value: []byte(`{"before":null`), Table: "a.b"},
		pipeline.Record{Value: []byte(`{"n":3}`)},
	)
	var d destination
	d.fault = func(pending []pipeline.Delivery) error {
		for _, p := range pending {
			if strings.Contains(string(p.Value), "2") {
				return &pipeline.RejectedError{Rejected: []pipeline.Rejected{{Delivery: p, Reason: "mapper_parsing_exception"}}}
			}
		}
		return nil
	}
	once(t, c, sinkFile(sinkEntry("a", memory{to: &d}, func(e *pipeline.SinkEntry) { e.Where = "n > 0" })))
	if got := values(d.all()); got != `{"n":1} {"n":3}` {
		t.Errorf("delivered %s", got)
	}
	dead := map[string]string{}
	for _, k := range contents(t, c, pipeline.DeadStream("p", "a"))[0] {
		dead[headerOf(k, pipeline.HeaderOriginOffset)] = headerOf(k, pipeline.HeaderReason)
		if headerOf(k, pipeline.HeaderOriginStream) != "numbers" || headerOf(k, pipeline.HeaderSink) != "a" || headerOf(k, pipeline.HeaderOriginPartition) != "0" {
			t.Errorf("a dead letter without its origin: %v", k.Headers)
		}
	}
	for offset, want := range map[string]string{"1": "mapper_parsing", "2": "not a JSON object", "3": "cut off"} {
		if !strings.Contains(dead[offset], want) {
			t.Errorf("offset %s: reason %q, want %q", offset, dead[offset], want)
		}
	}
	if len(dead) != 3 {
		t.Errorf("got %d dead letters, want 3", len(dead))
	}
	again := worker(t, sinkFile(sinkEntry("a", memory{to: &d})), open(t, c), pipeline.WorkerOptions{Once: true})
	if err := again.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := again.Status().Sinks[0].DeadLetters; n != 3 {
		t.Errorf("after a restart the status counts %d dead letters, want the 3 that are kept", n)
	}
}

// What the row was leaves the sink, what it became is in the dead letters.
func TestAnUpdateThatCannotBeJudgedIsADeadLetterAndADelete(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "rows", 1, pipeline.Record{Table: "shop.orders", Source: "db", Position: "1", Key: []byte(`{"id":1}`),
		Value: []byte(`{"before":{"id":1,"n":9},"after":{"id":1,"n":null},"op":"u"}`)})
	var d destination
	once(t, c, sinkFile(sinkEntry("a", memory{to: &d}, func(e *pipeline.SinkEntry) { e.Streams, e.Where = []string{"rows"}, "n > 3" })))
	if got := d.all(); len(got) != 1 || got[0].Op != pipeline.OpDelete || string(got[0].Before.JSON()) != `{"id":1,"n":9}` {
		t.Errorf("delivered %v", got)
	}
	if dead := contents(t, c, pipeline.DeadStream("p", "a"))[0]; len(dead) != 1 {
		t.Errorf("got %d dead letters, want 1", len(dead))
	}
}

func TestDeadSinkDoesNotSlowTheOthers(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var emitted atomic.Int64
	var good, bad destination
	var down atomic.Bool
	down.Store(true)
	bad.fault = func([]pipeline.Delivery) error {
		if down.Load() {
			return errors.New("401 unauthorized")
		}
		return nil
	}
	const total = 5000
	f := sourceFile(script{run: counting(total, &emitted)})
	f.Sinks = []pipeline.SinkEntry{sinkEntry("good", memory{to: &good}), sinkEntry("bad", memory{to: &bad})}
	w := worker(t, f, open(t, c), pipeline.WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "the good sink has all", func() bool { return good.count() == total })
	if bad.count() != 0 {
		t.Errorf("the dead sink got %d", bad.count())
	}
	eventually(t, "the status says why", func() bool {
		for _, s := range w.Status().Sinks {
			if s.Name == "bad" {
				return s.State == pipeline.StateRetrying && strings.Contains(s.Error, "401")
			}
		}
		return false
	})
	down.Store(false)
	eventually(t, "the sink catches up", func() bool { return bad.count() == total })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	checkRows(t, bad.all(), total)
}
