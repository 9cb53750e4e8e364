package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/pprof"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// run is one run of a source.
type run struct {
	emitter *Emitter
	cancel  context.CancelFunc
	label   string
	done    chan struct{} // closed when Run has returned
	err     error         // valid once done is closed
}

// start opens the source and runs it from the journal's checkpoint.
func start(t *testing.T, j *Journal, rng *rand.Rand, origin Origin, once bool) *run {
	t.Helper()
	source := origin.Open(t, once)
	from, emitter := j.Start(rng, source)
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{emitter: emitter, cancel: cancel, label: fmt.Sprintf("run of %s at %p", t.Name(), emitter), done: make(chan struct{})}
	go pprof.Do(ctx, pprof.Labels("sourcetest", r.label), func(ctx context.Context) {
		r.err = source.Run(ctx, from, emitter)
		close(r.done)
	})
	stopAsking := make(chan struct{})
	go func() { <-r.done; close(stopAsking) }()
	if reporter, ok := source.(pipeline.Reporter); ok {
		go ask(reporter, stopAsking)
	}
	t.Cleanup(func() { cancel(); <-r.done })
	return r
}

// ask calls Report as status does: at any time, from another goroutine.
func ask(r pipeline.Reporter, stop <-chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		r.Report()
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

func (r *run) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// wait returns what Run returned, after checking that nothing of it goes on.
func (r *run) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		t.Fatalf("Run has not returned after %s", patience)
	}
	r.awaitNoGoroutine(t)
	for _, fault := range r.emitter.Faults() {
		t.Error(fault)
	}
	return r.err
}

func (r *run) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := r.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v after its context had ended, want the context's error", err)
	}
}

// awaitNoGoroutine finds goroutines by the label that they inherit, so that tests
// beside this one don't count. One that has been told to end may take a moment.
func (r *run) awaitNoGoroutine(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		var profile bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(profile.Bytes(), []byte(fmt.Sprintf("%q", r.label))) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines of Run are left:\n%s", profile.Bytes())
		}
		time.Sleep(time.Millisecond) // the profile has no event to wait for
	}
}

// awaitEmit waits until the source has called Emit.
func (r *run) awaitEmit(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for r.emitter.Emits() == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("no call of Emit after %s", patience)
		}
		time.Sleep(time.Millisecond)
	}
}

// crashAt ends the run soon: at a call of Emit, or at a moment, in one of the ways
// in which a process ends.
func (r *run) crashAt(rng *rand.Rand) {
	switch rng.IntN(3) {
	case 0:
		r.emitter.FailEmit(rng.IntN(6), ErrFenced)
	case 1:
		r.emitter.FailFlush(ErrFenced)
	}
	time.AfterFunc(time.Duration(rng.IntN(150))*time.Millisecond, r.cancel)
}

// aside is a Write under way.
type aside struct {
	done chan struct{}
	ids  []string
	err  error
}

// writeAside writes while the test goes on.
func writeAside(origin Origin, n int) *aside {
	a := &aside{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
		defer cancel()
		a.ids, a.err = origin.Write(ctx, n)
	}()
	return a
}

func (a *aside) wait(t *testing.T) []string {
	t.Helper()
	<-a.done
	if a.err != nil {
		t.Fatalf("writing to the origin: %v", a.err)
	}
	return a.ids
}

func write(t *testing.T, origin Origin, n int) []string {
	t.Helper()
	return writeAside(origin, n).wait(t)
}

// unique numbers what must differ between origins of one test binary.
var unique atomic.Int64

// Unique returns a number that no other call in this process returns.
func Unique() int64 { return unique.Add(1) }
