package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// Origin is where a source reads: a database, a folder of logs, a client that posts.
type Origin interface {
	// Open opens the source as a new process would.
	Open(t *testing.T, once bool) pipeline.Source
	// Write makes n changes and returns an id for each, unique over the origin's life
	// and in the order in which the source is to emit them. Where the origin pushes,
	// it returns once all were acknowledged, over restarts of the source.
	Write(ctx context.Context, n int) (ids []string, err error)
	// ID returns the id of the change that a record is about; empty for a record that
	// Write did not cause.
	ID(r pipeline.Record) string
}

// Disturber is an Origin to which things happen: rotation, a restart, a lost connection.
type Disturber interface {
	Disturb(ctx context.Context, rng *rand.Rand) error
}

// Options say what kind of origin it is. The zero value suits one that is read.
type Options struct {
	// Push says that the origin pushes, so that nothing is kept outside the journal.
	Push bool
	// Unordered says that the order of changes is not kept.
	Unordered bool
	// Lagging says that a change may reach the place that is read a moment after Write
	// has returned, so that Once need not see it.
	Lagging bool
	// Kills is the number of crashes; 0 is 25.
	Kills int
	// Seed makes the crashes repeatable; 0 is taken from the clock and printed.
	Seed uint64
}

// patience bounds every wait of the suite; a source that needs longer has failed.
const patience = 30 * time.Second

// Run runs the suite. Each of its tests gets an origin of its own.
func Run(t *testing.T, newOrigin func(t *testing.T) Origin, o Options) {
	if o.Kills == 0 {
		o.Kills = 25
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	tests := []struct {
		name string
		test func(t *testing.T, origin Origin, o Options)
	}{
		{"RunEndsWithItsContext", testEnd},
		{"RunEndsWhileEmitBlocks", testBlocked},
		{"RunReturnsTheErrorOfEmit", testEmitError},
		{"RunReturnsTheErrorOfFlush", testFlushError},
		{"RunRefusesAForeignPosition", testForeignPosition},
		{"OnceReturnsNil", testOnce},
		{"NothingMissingNothingTwiceOverKills", testKills},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) { c.test(t, newOrigin(t), o) })
	}
}

// testEnd wants the context's error, and no goroutine left.
func testEnd(t *testing.T, origin Origin, o Options) {
	j := NewJournal()
	r := start(t, j, nil, origin, false)
	ids := write(t, origin, 50)
	j.await(t, origin, ids)
	r.cancel()
	if err := r.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v after its context had ended, want the context's error", err)
	}
	j.check(t, origin, ids, !o.Unordered)
}

// testBlocked wants Run to end although the journal takes nothing.
func testBlocked(t *testing.T, origin Origin, o Options) {
	j := NewJournal()
	r := start(t, j, nil, origin, false)
	unblock := r.emitter.Block()
	defer unblock()
	written := writeAside(origin, 50)
	r.awaitEmit(t)
	r.cancel()
	if err := r.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v while Emit blocked, want the context's error", err)
	}
	unblock()
	again := start(t, j, nil, origin, false)
	ids := written.wait(t)
	j.await(t, origin, ids)
	again.stop(t)
	j.check(t, origin, ids, !o.Unordered)
}

// testEmitError wants Emit's error back, wherever it comes.
func testEmitError(t *testing.T, origin Origin, o Options) {
	j := NewJournal()
	var all []string
	for n := range 3 {
		failure := fmt.Errorf("emit failed at call %d", n)
		r := start(t, j, nil, origin, false)
		r.emitter.FailEmit(n, failure)
		written := writeAside(origin, 50)
		// A source may take all in one call; so further writes follow until it failed.
		for !r.over() {
			select {
			case <-r.done:
			case <-written.done:
				all = append(all, written.wait(t)...)
				written = writeAside(origin, 1)
			case <-time.After(patience):
				t.Fatal("Run goes on after Emit returned an error")
			}
		}
		if err := r.wait(t); !errors.Is(err, failure) {
			t.Errorf("Run returned %v, want the error of Emit", err)
		}
		again := start(t, j, nil, origin, false)
		all = append(all, written.wait(t)...)
		j.await(t, origin, all)
		again.stop(t)
	}
	j.check(t, origin, all, !o.Unordered)
}

// testFlushError wants Flush's error back from a source that flushes.
func testFlushError(t *testing.T, origin Origin, o Options) {
	if !o.Push {
		return // only a source whose clients wait for durability has to flush
	}
	j := NewJournal()
	failure := errors.New("flush failed")
	r := start(t, j, nil, origin, false)
	r.emitter.FailFlush(failure)
	written := writeAside(origin, 10)
	if err := r.wait(t); !errors.Is(err, failure) {
		t.Errorf("Run returned %v, want the error of Flush", err)
	}
	again := start(t, j, nil, origin, false)
	ids := written.wait(t)
	again.stop(t)
	j.check(t, origin, ids, !o.Unordered)
}

// testForeignPosition wants a stop that says what to do, not a guess.
func testForeignPosition(t *testing.T, origin Origin, _ Options) {
	source := origin.Open(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, emitter := NewJournal().Start(nil, source)
	err := source.Run(ctx, "no position of any source\x00", emitter)
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code == "" || stop.Fix == "" {
		t.Errorf("Run returned %v for a position that it can't read, want a *pipeline.StopError with code and fix", err)
	}
}

// testOnce wants all that was there, then nil; and the rest the next time.
func testOnce(t *testing.T, origin Origin, o Options) {
	j := NewJournal()
	var all []string
	for range 3 {
		if !o.Push {
			all = append(all, write(t, origin, 200)...)
		}
		r := start(t, j, nil, origin, true)
		if err := r.wait(t); err != nil {
			t.Fatalf("Run returned %v for Once, want nil", err)
		}
		if !o.Lagging {
			j.check(t, origin, all, !o.Unordered)
		}
	}
	if o.Lagging {
		r := start(t, j, nil, origin, false)
		j.await(t, origin, all)
		r.stop(t)
		j.check(t, origin, all, !o.Unordered)
	}
}

// testKills crashes the source at random moments while changes are made.
func testKills(t *testing.T, origin Origin, o Options) {
	t.Logf("seed %d", o.Seed)
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	j := NewJournal()
	var all []string
	written := writeAside(origin, 1)
	for range o.Kills {
		r := start(t, j, rng, origin, false)
		r.crashAt(rng)
		select {
		case <-written.done:
			all = append(all, written.wait(t)...)
			written = writeAside(origin, 1+rng.IntN(300))
		default:
		}
		if d, ok := origin.(Disturber); ok && rng.IntN(3) == 0 {
			if err := d.Disturb(t.Context(), rng); err != nil {
				t.Fatalf("disturbing the origin: %v", err)
			}
		}
		if err := r.wait(t); err == nil {
			t.Fatal("Run returned nil without Once")
		}
	}
	r := start(t, j, rng, origin, false)
	all = append(all, written.wait(t)...)
	j.await(t, origin, all)
	r.stop(t)
	j.check(t, origin, all, !o.Unordered)
	t.Logf("%d kills, %d records", o.Kills, len(all))
}

// check compares the journal with what was written.
func (j *Journal) check(t *testing.T, origin Origin, want []string, ordered bool) {
	t.Helper()
	place := make(map[string]int, len(want))
	for i, id := range want {
		place[id] = i
	}
	seen := make([]int, len(want))
	positions := map[string]string{}
	var last [partitions]int
	for _, r := range j.Records() {
		id := origin.ID(r)
		if id == "" {
			continue
		}
		i, ok := place[id]
		if !ok {
			t.Errorf("the journal has %q, which was never written", id)
			continue
		}
		if first, twice := positions[id]; twice {
			t.Errorf("%q is in the journal at the positions %q and %q", id, first, r.Position)
		}
		positions[id] = r.Position
		seen[i]++
		if ordered && i < last[r.Partition] {
			t.Errorf("%q comes after %q in its partition", id, want[last[r.Partition]])
		}
		last[r.Partition] = i
	}
	if missing := slices.Index(seen, 0); missing >= 0 {
		n := 0
		for _, s := range seen {
			if s == 0 {
				n++
			}
		}
		t.Errorf("%d of %d changes are missing, the first is %q", n, len(want), want[missing])
	}
	for _, p := range j.changedAfterwards() {
		t.Errorf("the source wrote to the bytes of the record at %q after handing it over", p)
	}
}

// await waits until the journal has all the ids.
func (j *Journal) await(t *testing.T, origin Origin, ids []string) {
	t.Helper()
	deadline := time.After(patience)
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for seen := 0; ; {
		changed := j.Changed()
		records := j.Records()
		for _, r := range records[min(seen, len(records)):] {
			delete(missing, origin.ID(r))
		}
		if seen = len(records); len(missing) == 0 {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			for id := range missing {
				t.Fatalf("after %s %d of %d changes have not arrived, one of them is %q", patience, len(missing), len(ids), id)
			}
		}
	}
}
