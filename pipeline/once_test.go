package pipeline_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// startRun runs a worker of a shared journal until the returned function is called.
func startRun(t *testing.T, c brokers, f *pipeline.File, o pipeline.WorkerOptions) (w *pipeline.Worker, wire *cable, ended chan error, stop func()) {
	t.Helper()
	wire, ended = &cable{}, make(chan error, 1)
	w = worker(t, f, open(t, c, wire.plug, remote), o)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { ended <- w.Run(ctx) }()
	return w, wire, ended, cancel
}

// endOf waits for the end of a run.
func endOf(t *testing.T, ended chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the run does not end")
		return nil
	}
}

// numbered fills a stream of four partitions.
func numbered(t *testing.T, c brokers, n int) {
	t.Helper()
	var all []pipeline.Record
	for i := range n {
		r := number(i)
		r.Partition = int32(i % 4)
		all = append(all, r)
	}
	fill(t, c, "numbers", 4, all...)
}

// down is a destination that refuses until it is up.
func down(up *atomic.Bool) *destination {
	return &destination{fault: func([]pipeline.Delivery) error {
		if !up.Load() {
			return errors.New("connection refused")
		}
		return nil
	}}
}

func stopCode(err error) string {
	var stop *pipeline.StopError
	if errors.As(err, &stop) {
		return stop.Code
	}
	return ""
}

func TestARunWithAnEndWaitsForWhatOthersDeliver(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const total = 40
	numbered(t, c, total)
	var up atomic.Bool
	d := down(&up)
	live, _, _, _ := startRun(t, c, sinkFile(sinkEntry("a", memory{to: d})), pipeline.WorkerOptions{})
	eventually(t, "a worker to have what it can't deliver", func() bool { return live.Status().Sinks[0].State == pipeline.StateRetrying })
	var untouched destination
	w, _, ended, _ := startRun(t, c, sinkFile(sinkEntry("a", memory{to: &untouched})), pipeline.WorkerOptions{Once: true})
	eventually(t, "the run with an end to say whom it waits for", func() bool {
		s := w.Status().Sinks[0]
		return s.State == pipeline.StateStandby && strings.Contains(s.Waits, "numbers/0 (at 0 of 10): worker ") && strings.Contains(s.Waits, ", process ")
	})
	up.Store(true)
	if err := endOf(t, ended); err != nil {
		t.Fatal(err)
	}
	if s := w.Status().Sinks[0].State; s != pipeline.StateDone {
		t.Errorf("it is %s", s)
	}
	checkAllThere(t, append(d.all(), untouched.all()...), total)
}

func TestARunWithAnEndSaysWhoDeliversNothing(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	numbered(t, c, 40)
	live, _, _, _ := startRun(t, c, sinkFile(sinkEntry("a", memory{to: down(new(atomic.Bool))})), pipeline.WorkerOptions{})
	eventually(t, "a worker to have what it can't deliver", func() bool { return live.Status().Sinks[0].State == pipeline.StateRetrying })
	_, _, ended, _ := startRun(t, c, sinkFile(sinkEntry("a", memory{to: &destination{}})), pipeline.WorkerOptions{Once: true, Patience: 300 * time.Millisecond})
	err := endOf(t, ended)
	if stopCode(err) != "others-stuck" || !strings.Contains(err.Error(), "numbers/3 (at 0 of 10): worker ") {
		t.Errorf("got %v, want others-stuck with who has numbers/3", err)
	}
}

func TestARunWithAnEndTakesOverFromTheDead(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const total = 40
	numbered(t, c, total)
	live, wire, _, _ := startRun(t, c, sinkFile(sinkEntry("a", memory{to: down(new(atomic.Bool))})), pipeline.WorkerOptions{})
	eventually(t, "a worker to have what it can't deliver", func() bool { return live.Status().Sinks[0].State == pipeline.StateRetrying })
	var d destination
	w, _, ended, _ := startRun(t, c, sinkFile(sinkEntry("a", memory{to: &d})), pipeline.WorkerOptions{Once: true})
	eventually(t, "the run with an end to stand by", func() bool { return w.Status().Sinks[0].State == pipeline.StateStandby })
	wire.sever()
	if err := endOf(t, ended); err != nil {
		t.Fatal(err)
	}
	checkRows(t, d.all(), total)
}

func TestRunsWithAnEndShareTheWork(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const total = 400
	numbered(t, c, total)
	var d destination
	file := func() *pipeline.File { return sinkFile(sinkEntry("a", memory{to: &d, resume: true})) }
	var runs []chan error
	for range 3 {
		_, _, ended, _ := startRun(t, c, file(), pipeline.WorkerOptions{Once: true})
		runs = append(runs, ended)
	}
	for _, ended := range runs {
		if err := endOf(t, ended); err != nil {
			t.Error(err)
		}
	}
	checkAllThere(t, d.all(), total)
}

// checkAllThere fails unless each number was delivered, however often: on a machine that
// stands still for seconds a worker may be taken for dead.
func checkAllThere(t *testing.T, rows []pipeline.Delivery, want int) {
	t.Helper()
	seen := map[string]bool{}
	for i := range rows {
		seen[rows[i].Position] = true
	}
	if len(seen) != want {
		t.Errorf("%d of %d records are delivered", len(seen), want)
	}
}

func TestARunWithAnEndLeavesASourceToWhoRunsIt(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	live, _, liveEnded, stop := startRun(t, c, sourceFile(script{run: endless}), pipeline.WorkerOptions{})
	eventually(t, "a worker runs the source", func() bool { return live.Status().Sources[0].Records > 20 })
	var d destination
	f := sourceFile(script{run: endless})
	f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &d})}
	_, _, ended, _ := startRun(t, c, f, pipeline.WorkerOptions{Once: true, Patience: time.Second})
	err := endOf(t, ended)
	if stopCode(err) != "source-taken" || !strings.Contains(err.Error(), "it is run by worker ") {
		t.Errorf("got %v, want source-taken with who runs it", err)
	}
	if d.count() < 20 {
		t.Errorf("the sink got %d records of what was in the journal", d.count())
	}
	at := live.Status().Sources[0].Records
	eventually(t, "the worker goes on", func() bool { return live.Status().Sources[0].Records > at+20 })
	if s := live.Status().Sources[0]; s.State != pipeline.StateRunning || s.Error != "" {
		t.Errorf("the worker is %s, error %q", s.State, s.Error)
	}
	stop()
	<-liveEnded
}

func TestRunsWithAnEndTakeTurns(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	const total = 3000
	var emitted atomic.Int64
	_, wire, _, _ := startRun(t, c, sourceFile(script{run: endless}), pipeline.WorkerOptions{Once: true})
	eventually(t, "a run that will be killed to begin", func() bool { return len(contents(t, c, "numbers")[0]) > 0 })
	wire.sever()
	var runs []chan error
	for range 3 {
		_, _, ended, _ := startRun(t, c, sourceFile(script{run: counting(total, &emitted)}), pipeline.WorkerOptions{Once: true})
		runs = append(runs, ended)
	}
	for _, ended := range runs {
		if err := endOf(t, ended); err != nil {
			t.Error(err)
		}
	}
	checkNumbers(t, c, total)
}

// gate is a source of what others send.
type gate struct{ script }

func (g gate) OpenSource(pipeline.SourceEnv) (pipeline.Source, error) { return gateSource{}, nil }

type gateSource struct{ scriptSource }

func (gateSource) Receives() {}

func TestARunWithAnEndMakesTheStreamOfAReceiver(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var d destination
	f := sourceFile(script{})
	f.Sources[0].Config = gate{}
	f.Sinks = []pipeline.SinkEntry{sinkEntry("a", memory{to: &d})}
	once(t, c, f, remote)
	once(t, c, f)
	if got := contents(t, c, "numbers"); len(got[0]) != 0 {
		t.Errorf("the stream holds %d records", len(got[0]))
	}
}
