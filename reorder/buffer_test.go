package reorder_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/reorder"
)

// TestReadsNoClockAndImportsNothingOfOurs keeps the package the pure value that
// replays depend on.
func TestReadsNoClockAndImportsNothingOfOurs(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		looked++
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range file.Imports {
			switch path := strings.Trim(imp.Path.Value, `"`); {
			case strings.Contains(path, "."):
				t.Errorf("%s imports %s", e.Name(), path)
			case path == "os" || path == "net" || path == "sync" || path == "context":
				t.Errorf("%s imports %s, which a pure value has no use for", e.Name(), path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", e.Name())
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name != "Duration" &&
					n.Sel.Name != "Microsecond" && n.Sel.Name != "Second" && n.Sel.Name != "Minute" && n.Sel.Name != "Hour" {
					t.Errorf("%s uses time.%s", e.Name(), n.Sel.Name)
				}
			}
			return true
		})
	}
	if looked < 10 {
		t.Fatalf("looked at %d files only", looked)
	}
}

func TestOptionErrorsNameTheOption(t *testing.T) {
	for option, o := range map[string]reorder.Options{
		"MaxOutOfOrder": {MaxOutOfOrder: -1},
		"IdleAfter":     {MaxOutOfOrder: time.Second, IdleAfter: time.Millisecond},
		"Hold":          {MaxOutOfOrder: time.Minute, Hold: time.Second},
		"CapBytes":      {CapBytes: -1},
		"Late":          {Late: reorder.Clamp},
		"FutureLimit":   {FutureLimit: -1},
		"PastLimit":     {PastLimit: -1},
		"Implausible":   {Implausible: reorder.Drop},
		"Order":         {Order: 9},
	} {
		_, err := reorder.New[int](o)
		var oe *reorder.OptionError
		if !errors.As(err, &oe) || oe.Option != option || !strings.HasPrefix(err.Error(), option+" ") {
			t.Errorf("%+v: error %v, want one that names %s", o, err, option)
		}
	}
}

func TestDefaultsFollowTheBound(t *testing.T) {
	for _, c := range []struct{ bound, idle, hold, slot time.Duration }{
		{0, 10 * time.Second, time.Minute, 1024 * time.Microsecond},
		{3 * time.Second, 10 * time.Second, time.Minute, 4096 * time.Microsecond},
		{time.Minute, 2 * time.Minute, 10 * time.Minute, 65536 * time.Microsecond},
	} {
		b, err := reorder.New[int](reorder.Options{MaxOutOfOrder: c.bound})
		if err != nil {
			t.Fatal(err)
		}
		o := b.Options()
		if o.IdleAfter != c.idle || o.Hold != c.hold || o.Slot() != c.slot || o.CapBytes != 256<<20 {
			t.Errorf("B=%v: I=%v H=%v slot=%v cap=%d, want %v %v %v 256 MiB", c.bound, o.IdleAfter, o.Hold, o.Slot(), o.CapBytes, c.idle, c.hold, c.slot)
		}
	}
}

func TestBadRecordsAreRefusedAndChangeNothing(t *testing.T) {
	b, _ := reorder.New[int](reorder.Options{})
	p := b.Assign("p")
	push := func(pos, stamp int64) error {
		return b.Push(reorder.Record[int]{Partition: p, Position: pos, Stamp: stamp, Time: 1e15})
	}
	if err := push(5, 1e15); err != nil {
		t.Fatal(err)
	}
	before := b.Metrics()
	var pe *reorder.PositionError
	if err := push(5, 1e15+1); !errors.As(err, &pe) || pe.Next != 6 {
		t.Errorf("a position again: %v, want a *PositionError with next 6", err)
	}
	var se *reorder.StampError
	if err := push(6, -1); !errors.As(err, &se) {
		t.Errorf("a negative stamp: %v, want a *StampError", err)
	}
	if diff := cmp.Diff(before, b.Metrics()); diff != "" {
		t.Errorf("refused records changed the buffer:\n%s", diff)
	}
	b.End()
	if err := push(7, 1e15); !errors.Is(err, reorder.ErrEnded) {
		t.Errorf("push after End: %v", err)
	}
}

func TestCheckpointWantsADrainedBuffer(t *testing.T) {
	b, _ := reorder.New[int](reorder.Options{})
	p := b.Assign("p")
	for i := range int64(10) {
		if err := b.Push(reorder.Record[int]{Partition: p, Position: i, Stamp: 1e15 + i, Time: 1e15 + i}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Checkpoint(); !errors.Is(err, reorder.ErrNotDrained) {
		t.Errorf("not settled: %v", err)
	}
	b.Settle()
	if _, err := b.Checkpoint(); !errors.Is(err, reorder.ErrNotDrained) {
		t.Errorf("not drained: %v", err)
	}
	for len(b.Next()) > 0 {
	}
	cp, err := b.Checkpoint()
	if err != nil || cp.Partitions[0].Low != 9 {
		t.Errorf("checkpoint %+v, %v, want low 9", cp, err)
	}
}

// TestNotDrainingLosesNothing pushes everything before it takes anything.
func TestNotDrainingLosesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	parts, events := mix{parts: 2, records: 3000, delay: 100 * time.Millisecond, poison: .01}.make(rng)
	opts := reorder.Options{MaxOutOfOrder: 200 * time.Millisecond, Late: reorder.Pass}
	b, _ := reorder.New[event](opts)
	for _, p := range parts {
		b.Assign(p)
	}
	for _, e := range canonical(events) {
		if err := b.Push(reorder.Record[event]{Partition: b.Assign(e.part), Position: e.pos, Stamp: e.j, Time: e.ts, Size: e.size, Payload: e}); err != nil {
			t.Fatal(err)
		}
	}
	b.End()
	d := &driver{t: t, buf: b}
	d.drain()
	m := newModel(b.Options(), parts)
	if diff := cmp.Diff(m.run(canonical(events), true), d.out); diff != "" {
		t.Errorf("output differs from the model (-want +got):\n%s", diff)
	}
}

// TestForgetsProducersWithoutAnyoneNoticing lets short-lived producers come and go.
func TestForgetsProducersWithoutAnyoneNoticing(t *testing.T) {
	opts := reorder.Options{MaxOutOfOrder: 100 * time.Millisecond, IdleAfter: 200 * time.Millisecond}
	for _, order := range []reorder.Order{reorder.OrderEvent, reorder.OrderSource} {
		opts.Order = order
		rng := rand.New(rand.NewPCG(9, uint64(order)))
		parts, events := mix{parts: 2, records: 6000, delay: 50 * time.Millisecond, skew: 2 * time.Second, poison: .05}.make(rng)
		for i := range events {
			switch rng.IntN(8) {
			case 0: // the partition itself
			case 1: // one that was silent for long
				events[i].source = fmt.Sprintf("pod-%d", rng.IntN(i/5+20))
			default:
				events[i].source = fmt.Sprintf("pod-%d", i/5+rng.IntN(20))
			}
		}
		d := newDriver(t, 1, opts, parts, events)
		d.ticks, d.kills = true, 5
		got := d.run(true)
		if diff := cmp.Diff(newModel(d.buf.Options(), parts).run(canonical(events), true), got); diff != "" {
			t.Fatalf("order %v: output differs from the model (-want +got):\n%s", order, diff)
		}
		if n := len(d.buf.Sources()); n > 700 {
			t.Errorf("order %v: %d sources are remembered", order, n)
		}
	}
}

// TestSteadyStateAllocatesNothing covers what BenchmarkBuffer shows, where it fails.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, s := range shapes {
		in := s.make(10_000)
		b, _ := reorder.New[uint64](reorder.Options{MaxOutOfOrder: 3 * time.Second})
		for p := range s.parts {
			b.Assign(fmt.Sprint(p))
		}
		i := 0
		step := func() {
			r := in.records[i%len(in.records)]
			shift := 1_700_000_000_000_000 + int64(i/len(in.records))*in.span
			r.Stamp, r.Time, r.Position = r.Stamp+shift, r.Time+shift, int64(i)
			i++
			if err := b.Push(r); err != nil {
				t.Fatal(err)
			}
			for len(b.Next()) > 0 {
			}
		}
		for range 300_000 {
			step()
		}
		if n := testing.AllocsPerRun(20_000, step); n > 0 {
			t.Errorf("%s: %v allocations a record", s.name, n)
		}
	}
}

// TestLetsGoOfPayloads holds that the buffer keeps no payload alive once it has left
// and something else has left after it.
func TestLetsGoOfPayloads(t *testing.T) {
	t.Run("in order", func(t *testing.T) { letsGo(t, func(i int64) int64 { return i }) })
	t.Run("sorted at release", func(t *testing.T) { letsGo(t, func(i int64) int64 { return i ^ 1 }) })
	t.Run("beyond the ring", func(t *testing.T) { letsGo(t, func(i int64) int64 { return i + i%3*300_000 }) })
}

func letsGo(t *testing.T, place func(i int64) int64) {
	type payload [1 << 12]byte
	b, _ := reorder.New[*payload](reorder.Options{MaxOutOfOrder: time.Second})
	p := b.Assign("p")
	freed := make(chan int64, 2000)
	for i := range int64(2000) {
		data := new(payload)
		runtime.AddCleanup(data, func(i int64) { freed <- i }, i)
		r := reorder.Record[*payload]{Partition: p, Position: i, Stamp: 1e15 + i*100, Time: 1e15 + place(i)*100, Payload: data}
		if err := b.Push(r); err != nil {
			t.Fatal(err)
		}
	}
	b.FlushIdle()
	for len(b.Next()) > 0 {
	}
	n := 0
	for range 20 { // a cleanup runs some time after the collection that found it
		runtime.GC()
		for n < 1990 {
			select {
			case <-freed:
				n++
				continue
			case <-time.After(100 * time.Millisecond):
			}
			break
		}
	}
	if n < 1990 { // the last groups, and the record pushed last, may stay
		t.Errorf("only %d of 2000 payloads were let go", n)
	}
	runtime.KeepAlive(b)
}

func TestHistogramQuantiles(t *testing.T) {
	in := shape{grain: 1, parts: 1, delay: func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1_000_000) }}.make(1_000_000)
	b, _ := reorder.New[uint64](reorder.Options{MaxOutOfOrder: time.Second, CapBytes: 4 << 30})
	b.Assign("p")
	for i, r := range in.records {
		r.Position, r.Stamp, r.Time = int64(i), r.Stamp+1e15, r.Time+1e15
		if err := b.Push(r); err != nil {
			t.Fatal(err)
		}
		for len(b.Next()) > 0 {
		}
	}
	q := b.Metrics().DisorderGlobal
	for _, c := range []struct {
		name      string
		got, want int64
	}{{"P50", q.P50, 500_000}, {"P99", q.P99, 990_000}, {"P99.9", q.P999, 999_000}, {"P99.99", q.P9999, 999_900}, {"max", q.Max, 1_000_000}} {
		if c.got < c.want*98/100 || c.got > c.want*107/100 {
			t.Errorf("%s = %d, want about %d and at most 6 %% above", c.name, c.got, c.want)
		}
	}
}
