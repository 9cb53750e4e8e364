package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/pipeline"
)

// endless emits a number every few milliseconds until it is told to stop.
func endless(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
	n := 0
	_, _ = fmt.Sscan(string(from), &n)
	for {
		if err := pauseFor(ctx, 5*time.Millisecond); err != nil {
			return err
		}
		if err := out.Emit(ctx, []pipeline.Record{number(n)}, pipeline.Position(fmt.Sprint(n+1))); err != nil {
			return err
		}
		n++
	}
}

func TestStatusSaysWhatHappens(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("no json")})
	var d destination
	f := sourceFile(script{run: endless})
	f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &d}, func(e *pipeline.SinkEntry) { e.Where = "n % 2 == 0" })}
	w := worker(t, f, open(t, c), pipeline.WorkerOptions{})
	if w.Status().Ready {
		t.Error("a worker that has not begun is ready")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "data moves", func() bool {
		s := w.Status()
		return s.Ready && s.Sinks[0].Records > 50 && s.Sources[0].Records > 50
	})
	cancel()
	<-ended
	s := w.Status()
	src, sink := s.Sources[0], s.Sinks[0]
	if src.State != pipeline.StateEnded || src.Position == "" || src.Bytes == 0 || src.Ends[0] == 0 {
		t.Errorf("source: %+v", src)
	}
	if sink.State != pipeline.StateEnded || sink.DeadLetters != 1 || sink.Filtered == 0 || sink.Cursor[pipeline.Partition{Stream: "numbers"}] == 0 || sink.Read < sink.Records {
		t.Errorf("sink: %+v", sink)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Errorf("the status is no JSON: %v", err)
	}
}

// TestSilentJournalIsSeen cuts a running worker off: nothing fails at once, but nothing
// moves either, and the status must say so.
func TestSilentJournalIsSeen(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var wire cable
	var d destination
	f := sourceFile(script{run: endless})
	f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &d})}
	w := worker(t, f, open(t, c, wire.plug), pipeline.WorkerOptions{Grace: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "data moves", func() bool { return w.Status().Ready && d.count() > 10 })
	wire.sever()
	deadline := time.Now().Add(time.Minute)
	for {
		s := w.Status()
		if s.Sources[0].State == pipeline.StateRetrying && s.Sinks[0].State == pipeline.StateRetrying && !s.Ready {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute after the journal fell silent: source %s, sink %s, ready %v", s.Sources[0].State, s.Sinks[0].State, s.Ready)
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the worker does not stop while the journal is silent")
	}
}

// A source that emits while a transaction can't end is told to stop all the same, and
// the status does not wait for it.
func TestASourceStopsWhileItsTransactionCannotEnd(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var wire cable
	w := worker(t, sourceFile(script{run: endless}), open(t, c, remote, wire.plug), pipeline.WorkerOptions{Grace: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "data moves", func() bool { return w.Status().Sources[0].Records > 10 })
	wire.sever()
	before := w.Status().Sources[0].Records
	for stuck, deadline := time.Now(), time.Now().Add(20*time.Second); time.Since(stuck) < 2*time.Second; {
		if now := w.Status().Sources[0].Records; now != before {
			before, stuck = now, time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatal("the source emits although no transaction ends")
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the worker does not stop")
	}
}

// A destination that takes a call and never answers is not "running".
func TestStalledSinkIsSeen(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, number(0), number(1))
	hang := make(chan struct{})
	d := destination{fault: func([]pipeline.Delivery) error { <-hang; return nil }}
	w := worker(t, sinkFile(sinkEntry("a", memory{to: &d})), open(t, c), pipeline.WorkerOptions{StalledAfter: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "the stall is said", func() bool {
		s := w.Status()
		return s.Sinks[0].State == pipeline.StateStalled && !s.Ready
	})
	s := w.Status().Sinks[0]
	if s.Behind != 2 || s.Lag <= 0 || !strings.Contains(s.Error, "the destination has not answered since") {
		t.Errorf("behind %d, lag %s, error %q", s.Behind, s.Lag, s.Error)
	}
	close(hang)
	eventually(t, "it runs again", func() bool { return w.Status().Ready && d.count() == 2 })
	cancel()
	<-ended
}

// A destination that can't be opened leaves records waiting: how many, and for how long,
// must be seen all the same.
func TestASinkThatCannotOpenIsBehind(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	old := number(0)
	old.Stamp = time.Now().Add(-time.Hour).UnixMicro()
	fill(t, c, "numbers", 1, old, number(1), number(2))
	w := worker(t, sinkFile(sinkEntry("a", memory{refuses: true})), open(t, c), pipeline.WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "what waits is counted", func() bool { return w.Status().Sinks[0].Behind == 3 })
	eventually(t, "since when is known", func() bool { return w.Status().Sinks[0].Lag > 59*time.Minute })
	cancel()
	<-ended
}

// TestRivalSourceIsFenced has another program append in a source's name again and again:
// the worker stops, and nothing is lost or doubled.
func TestRivalSourceIsFenced(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	first, _, ended, _ := startRun(t, c, sourceFile(script{run: endless}), pipeline.WorkerOptions{})
	stopped := func() bool { return first.Status().Sources[0].State == pipeline.StateStopped }
	for seen := int64(0); ; seen = first.Status().Sources[0].Records {
		eventually(t, "the worker to append, or to stop", func() bool { return first.Status().Sources[0].Records > seen+5 || stopped() })
		if stopped() {
			break
		}
		rival, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("daybook.p.src"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := rival.ProducerID(t.Context()); err != nil {
			t.Fatal(err)
		}
		rival.Close()
	}
	if err := endOf(t, ended); stopCode(err) != "source-fenced" {
		t.Errorf("got %v, want source-fenced", err)
	}
	second, _, ended, cancel := startRun(t, c, sourceFile(script{run: endless}), pipeline.WorkerOptions{})
	eventually(t, "another to go on", func() bool { return second.Status().Sources[0].Records > 20 })
	cancel()
	<-ended
	checkNumbers(t, c, len(contents(t, c, "numbers")[0]))
}

// TestConcurrentEmitsShareCommits lets many callers wait for their own record at the
// same time, as an HTTP server does.
func TestConcurrentEmitsShareCommits(t *testing.T) {
	for _, mode := range []struct {
		name   string
		change func(*pipeline.JournalOptions)
	}{{"embedded", func(*pipeline.JournalOptions) {}}, {"remote", remote}} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			const callers, each = 50, 20
			s := script{window: time.Minute, run: func(ctx context.Context, _ pipeline.Position, out pipeline.Emitter) error {
				var next atomic.Int64 // from the first again, should it be run again
				errs := make(chan error, callers)
				for range callers {
					go func() {
						for range each {
							n := int(next.Add(1) - 1)
							if err := out.Emit(ctx, []pipeline.Record{number(n)}, ""); err != nil {
								errs <- err
								return
							}
							if err := out.Flush(ctx); err != nil {
								errs <- err
								return
							}
						}
						errs <- nil
					}()
				}
				var all []error
				for range callers {
					all = append(all, <-errs)
				}
				return errors.Join(all...)
			}}
			f := sourceFile(s)
			w := worker(t, f, open(t, c, mode.change), pipeline.WorkerOptions{Once: true})
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, k := range contents(t, c, "numbers")[0] {
				seen[headerOf(k, pipeline.HeaderPosition)] = true
			}
			if len(seen) != callers*each {
				t.Errorf("got %d records, want %d", len(seen), callers*each)
			}
		})
	}
}

func TestMissingStreamIsSaid(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var d destination
	f := sinkFile(sinkEntry("a", memory{to: &d}))
	err := worker(t, f, open(t, c), pipeline.WorkerOptions{Once: true}).Run(t.Context())
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != "no-stream" {
		t.Errorf("got %v, want no-stream", err)
	}
	w := worker(t, f, open(t, c), pipeline.WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "it says what it waits for", func() bool { return strings.Contains(w.Status().Sinks[0].Waits, "does not exist yet") })
	fill(t, c, "numbers", 1, pipeline.Record{Value: []byte("a")})
	eventually(t, "it begins", func() bool { return d.count() == 1 })
	if s := w.Status().Sinks[0]; s.Waits != "" || s.Error != "" {
		t.Errorf("it still says that it waits for %q, error %q", s.Waits, s.Error)
	}
	cancel()
	<-ended
}
