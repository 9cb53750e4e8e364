package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

// script is a source made of a function.
type script struct {
	run    func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error
	window time.Duration // with one the source is a Deduper
}

func (s script) Fields(*configs.Fields) {}

func (s script) OpenSource(pipeline.SourceEnv) (pipeline.Source, error) {
	if s.window > 0 {
		return deduperScript{s}, nil
	}
	return scriptSource{s}, nil
}

type scriptSource struct{ s script }

func (s scriptSource) Run(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
	return s.s.run(ctx, from, out)
}

type deduperScript struct{ s script }

func (s deduperScript) Run(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
	return s.s.run(ctx, from, out)
}

func (s deduperScript) DedupeWindow() time.Duration { return s.s.window }

// sourceFile is a pipeline with one source.
func sourceFile(s script, change ...func(*pipeline.SourceEntry)) *pipeline.File {
	e := pipeline.SourceEntry{Name: "src", Stream: "numbers", Partitions: 1, PartitionBy: "key", Kind: "script", Config: s}
	for _, f := range change {
		f(&e)
	}
	return &pipeline.File{Version: 1, Pipeline: "p", Sources: []pipeline.SourceEntry{e}}
}

func partitions(n int) func(*pipeline.SourceEntry) {
	return func(e *pipeline.SourceEntry) { e.Partitions = n }
}

func worker(t *testing.T, f *pipeline.File, j *pipeline.Journal, o pipeline.WorkerOptions) *pipeline.Worker {
	t.Helper()
	w, err := pipeline.NewWorker(f, j, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// number is the n-th record of the counting sources.
func number(n int) pipeline.Record {
	return pipeline.Record{
		Key: []byte(strconv.Itoa(n % 97)), Value: fmt.Appendf(nil, `{"n":%d}`, n),
		Time: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC).UnixMicro() + int64(n), Position: strconv.Itoa(n),
	}
}

// counting emits the numbers up to the given one, and goes on from where it was; a
// safe place comes only every few records, as in a database's transactions.
func counting(upTo int, emitted *atomic.Int64) func(context.Context, pipeline.Position, pipeline.Emitter) error {
	return func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
		n, _ := strconv.Atoi(string(from))
		for n < upTo {
			batch := make([]pipeline.Record, 0, 16)
			for len(batch) < cap(batch) && n < upTo {
				batch = append(batch, number(n))
				n++
			}
			resume := pipeline.Position("")
			if n%48 == 0 || n == upTo {
				resume = pipeline.Position(strconv.Itoa(n))
			}
			if err := out.Emit(ctx, batch, resume); err != nil {
				return err
			}
			emitted.Store(int64(n))
		}
		return nil
	}
}

// checkNumbers fails unless the stream holds each number once, each partition's in
// rising order and with rising stamps.
func checkNumbers(t *testing.T, c brokers, want int) {
	t.Helper()
	seen := map[string]int{}
	for p, records := range contents(t, c, "numbers") {
		lastN, lastStamp := -1, int64(0)
		for _, k := range records {
			position := headerOf(k, pipeline.HeaderPosition)
			seen[position]++
			n, err := strconv.Atoi(position)
			if err != nil {
				t.Fatal(err)
			}
			stamp, err := strconv.ParseInt(headerOf(k, pipeline.HeaderStamp), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if n <= lastN || stamp <= lastStamp {
				t.Errorf("partition %d offset %d: number %d stamp %d after %d and %d", p, k.Offset, n, stamp, lastN, lastStamp)
			}
			lastN, lastStamp = n, stamp
		}
	}
	for n := range want {
		if got := seen[strconv.Itoa(n)]; got != 1 {
			t.Errorf("number %d is there %d times", n, got)
		}
	}
	if len(seen) != want {
		t.Errorf("got %d numbers, want %d", len(seen), want)
	}
}

func TestSourceAppendsWhatItEmits(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var emitted atomic.Int64
	w := worker(t, sourceFile(script{run: counting(5000, &emitted)}, partitions(3)), open(t, c), pipeline.WorkerOptions{Once: true})
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkNumbers(t, c, 5000)
	for _, k := range contents(t, c, "numbers")[0][:1] {
		n, _ := strconv.Atoi(headerOf(k, pipeline.HeaderPosition))
		want := number(n)
		if string(k.Value) != string(want.Value) || headerOf(k, pipeline.HeaderSource) != "src" || headerOf(k, pipeline.HeaderTime) != strconv.FormatInt(want.Time, 10) {
			t.Errorf("got %s from %q at %s", k.Value, headerOf(k, pipeline.HeaderSource), headerOf(k, pipeline.HeaderTime))
		}
	}
}

// TestKilledSourceLosesAndRepeatsNothing kills a source that appends all the time, again
// and again, each time at another moment, and lets a fresh process go on.
func TestKilledSourceLosesAndRepeatsNothing(t *testing.T) {
	for _, mode := range []struct {
		name   string
		change func(*pipeline.JournalOptions)
	}{{"embedded", func(*pipeline.JournalOptions) {}}, {"remote", remote}} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			random := rand.New(rand.NewPCG(1, 2))
			const total = 8000
			var emitted atomic.Int64
			inFlight := 0
			for life := 0; ; life++ {
				var wire cable
				j := open(t, c, wire.plug, mode.change)
				p := &paced{until: int64(1 + random.IntN(160)), reached: make(chan struct{})}
				if life == 25 {
					p.until = total // what is left comes in one go
				}
				slow := func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
					return counting(total, &emitted)(ctx, from, p.around(out))
				}
				w := worker(t, sourceFile(script{run: slow}, partitions(2)), j, pipeline.WorkerOptions{Once: true, Grace: time.Millisecond})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				select {
				case err := <-ended:
					cancel()
					if err != nil {
						t.Fatal(err)
					}
				case <-p.reached:
					if w.Status().Sources[0].InFlight > 0 {
						inFlight++
					}
					wire.sever()
					cancel()
					<-ended
					j.Close()
					continue
				}
				t.Logf("%d lives, %d ended with records on their way", life, inFlight)
				break
			}
			checkNumbers(t, c, total)
		})
	}
}

// paced slows a source down, so that it lives through checkpoints, and tells when it
// has emitted so many times.
type paced struct {
	pipeline.Emitter
	until, emits int64
	reached      chan struct{}
}

func (p *paced) around(out pipeline.Emitter) pipeline.Emitter {
	p.Emitter = out
	return p
}

func (p *paced) Emit(ctx context.Context, records []pipeline.Record, resume pipeline.Position) error {
	if err := pauseFor(ctx, 2*time.Millisecond); err != nil {
		return err
	}
	err := p.Emitter.Emit(ctx, records, resume)
	if p.emits++; p.emits == p.until {
		close(p.reached)
	}
	return err
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// TestSourceThatReadsInAnotherOrderRepeatsNothing lets a source with two files go on in
// another order than before, and crash again before it met all of what it had emitted.
func TestSourceThatReadsInAnotherOrderRepeatsNothing(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	record := func(position string) pipeline.Record {
		return pipeline.Record{Value: []byte(`{}`), Position: position, Time: 1}
	}
	life := func(steps ...string) {
		t.Helper()
		w := worker(t, sourceFile(script{run: func(ctx context.Context, _ pipeline.Position, out pipeline.Emitter) error {
			for _, s := range steps {
				position, resume, _ := strings.Cut(s, ">")
				if err := out.Emit(ctx, []pipeline.Record{record(position)}, pipeline.Position(resume)); err != nil {
					return err
				}
			}
			return nil
		}}), open(t, c), pipeline.WorkerOptions{Once: true})
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	life("a1>a1")
	life("a2", "b1", "a3")       // no safe place: all three come again
	life("b1>a1,b1", "b2>a1,b2") // b first; a2 and a3 are still to come
	life("b3>a1,b3", "a2")
	life("a2>a2,b3", "a3>a3,b3", "a4>a4,b3")
	var got []string
	for _, k := range contents(t, c, "numbers")[0] {
		got = append(got, headerOf(k, pipeline.HeaderPosition))
	}
	if want := "a1 a2 b1 a3 b2 b3 a4"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestSourceGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var emitted, lives atomic.Int64
	flaky := func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
		if lives.Add(1) < 4 {
			if err := counting(int(lives.Load())*500, &emitted)(ctx, from, out); err != nil {
				return err
			}
			return errors.New("connection lost")
		}
		return counting(3000, &emitted)(ctx, from, out)
	}
	w := worker(t, sourceFile(script{run: flaky}), open(t, c), pipeline.WorkerOptions{Once: true})
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkNumbers(t, c, 3000)
}

func TestStoppedSourceLeavesTheOthersRunning(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var emitted atomic.Int64
	f := sourceFile(script{run: counting(100, &emitted)})
	f.Sources = append(f.Sources, pipeline.SourceEntry{Name: "bad", Stream: "other", Partitions: 1, PartitionBy: "key",
		Config: script{run: func(context.Context, pipeline.Position, pipeline.Emitter) error {
			return &pipeline.StopError{Code: "binlog-purged", Where: "binlog.000001", Fix: "take a new snapshot"}
		}}})
	err := worker(t, f, open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != "binlog-purged" {
		t.Errorf("got %v, want the StopError", err)
	}
	checkNumbers(t, c, 100)
}

func TestRepeatsAreLeftOutAcrossRestarts(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var told []string // what the emitter said of each record: fresh ones have a stamp
	send := func(window time.Duration, ids ...string) {
		t.Helper()
		w := worker(t, sourceFile(script{window: window, run: func(ctx context.Context, _ pipeline.Position, out pipeline.Emitter) error {
			for _, id := range ids {
				r := []pipeline.Record{{Value: []byte(`{}`), Position: id, Time: 1}}
				if err := out.Emit(ctx, r, ""); err != nil {
					return err
				}
				if r[0].Stamp != 0 {
					told = append(told, id)
				}
				if err := out.Flush(ctx); err != nil {
					return err
				}
			}
			return nil
		}}), open(t, c), pipeline.WorkerOptions{Once: true})
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send(time.Minute, "a", "b", "a", "a")
	send(time.Minute, "b", "c", "a")
	send(time.Minute, "c", "d")
	var got []string
	for _, k := range contents(t, c, "numbers")[0] {
		got = append(got, headerOf(k, pipeline.HeaderPosition))
	}
	if want := "a b c d"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if diff := cmp.Diff(got, told); diff != "" {
		t.Errorf("the journal holds -, the emitter stamped +:\n%s", diff)
	}
}

func TestLongPositionsSurvive(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{10, 3000, 50_000} {
		noise := make([]byte, size)
		for i := range noise {
			noise[i] = byte(' ' + random.IntN(94))
		}
		position := pipeline.Position(noise)
		var got pipeline.Position
		step := func(next pipeline.Position) {
			w := worker(t, sourceFile(script{run: func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
				got = from
				return out.Emit(ctx, nil, next)
			}}), open(t, c), pipeline.WorkerOptions{Once: true})
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		step(position)
		step("0")
		if got != position {
			t.Errorf("a position of %d bytes came back as %d bytes", size, len(got))
		}
	}
}

// TestProcessKilledAgainAndAgainGetsOn kills a source long before it has met again what
// the journal holds of it, over and over: each life must bring it further all the same.
func TestProcessKilledAgainAndAgainGetsOn(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const total = 3000
	var emitted atomic.Int64
	safe := func(upTo int) func(context.Context, pipeline.Position, pipeline.Emitter) error {
		return func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
			n, _ := strconv.Atoi(string(from))
			for end := min(n+upTo, total); n < end; n++ {
				if err := out.Emit(ctx, []pipeline.Record{number(n)}, pipeline.Position(strconv.Itoa(n+1))); err != nil {
					return err
				}
			}
			emitted.Store(int64(n))
			return nil
		}
	}
	// The first life leaves a long tail behind a checkpoint at the beginning.
	var wire cable
	j := open(t, c, wire.plug)
	w := worker(t, sourceFile(script{run: func(ctx context.Context, _ pipeline.Position, out pipeline.Emitter) error {
		for n := range total / 2 {
			if err := out.Emit(ctx, []pipeline.Record{number(n)}, ""); err != nil {
				return err
			}
		}
		if err := out.Flush(ctx); err != nil {
			return err
		}
		emitted.Store(1)
		<-ctx.Done()
		return ctx.Err()
	}}), j, pipeline.WorkerOptions{Grace: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "the tail is there", func() bool { return emitted.Load() == 1 })
	wire.sever()
	cancel()
	<-ended
	lives := 0
	for ; emitted.Load() < total; lives++ {
		if lives > 20 {
			t.Fatalf("after %d lives it has got to %d", lives, emitted.Load())
		}
		once(t, c, sourceFile(script{run: safe(300)}))
	}
	checkNumbers(t, c, total)
}
