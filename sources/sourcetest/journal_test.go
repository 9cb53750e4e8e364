package sourcetest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

func records(from, to int) []pipeline.Record {
	var rs []pipeline.Record
	for n := from; n < to; n++ {
		rs = append(rs, pipeline.Record{Position: strconv.Itoa(n), Value: []byte(strconv.Itoa(n))})
	}
	return rs
}

func emit(t *testing.T, e *sourcetest.Emitter, rs []pipeline.Record, resume int) {
	t.Helper()
	if err := e.Emit(t.Context(), rs, pipeline.Position(strconv.Itoa(resume))); err != nil {
		t.Fatal(err)
	}
}

// A source that goes on where it is told ends up with each record once, whatever was
// lost; one that goes on anywhere else does not. Else the suite could not fail.
func TestTheJournalTellsARightSourceFromWrongOnes(t *testing.T) {
	t.Parallel()
	for name, skip := range map[string]int{"right": 0, "repeats what is before its position": -40, "leaves out what is behind it": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults := 0
			for seed := range uint64(40) {
				if !runs(t, seed, skip) {
					faults++
				}
			}
			if (faults > 0) != (skip != 0) {
				t.Errorf("%d of 40 journals are wrong", faults)
			}
		})
	}
}

// runs crashes a counting source ten times and reports whether the journal is right.
func runs(t *testing.T, seed uint64, skip int) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	j := sourcetest.NewJournal()
	const all = 2000
	for run := range 11 {
		from, e := j.Start(rng, nil)
		next := 0
		if from != "" {
			n, err := strconv.Atoi(string(from))
			if err != nil {
				t.Fatal(err)
			}
			next = max(0, n+skip)
		}
		for until := min(all, next+rng.IntN(400)); next < until || run == 10 && next < all; {
			to := min(all, next+1+rng.IntN(20))
			emit(t, e, records(next, to), to)
			next = to
		}
	}
	seen := map[string]bool{}
	for _, r := range j.Records() {
		if seen[r.Position] {
			return false
		}
		seen[r.Position] = true
	}
	return len(seen) == all
}

func TestAPositionUsedTwiceInOneRunIsAFault(t *testing.T) {
	t.Parallel()
	j := sourcetest.NewJournal()
	_, e := j.Start(nil, nil)
	emit(t, e, records(0, 3), 3)
	if f := e.Faults(); len(f) != 0 {
		t.Fatalf("got the faults %q", f)
	}
	emit(t, e, records(2, 3), 3)
	emit(t, e, []pipeline.Record{{Value: []byte("x")}}, 3)
	if f := e.Faults(); len(f) != 2 {
		t.Errorf("got the faults %q, want one for the position and one for its absence", f)
	}
}

func TestWhatIsLeftOutHasNoStamp(t *testing.T) {
	t.Parallel()
	j := sourcetest.NewJournal()
	_, e := j.Start(nil, nil)
	emit(t, e, records(0, 3), 3)
	if err := e.Emit(t.Context(), records(3, 5), ""); err != nil { // no place to go on
		t.Fatal(err)
	}
	from, e := j.Start(nil, nil)
	if from != "3" {
		t.Fatalf("the source is to go on at %q, want 3", from)
	}
	again := records(3, 7)
	emit(t, e, again, 7)
	var stamped []bool
	for _, r := range again {
		stamped = append(stamped, r.Stamp != 0)
	}
	if got := fmt.Sprint(stamped); got != "[false false true true]" {
		t.Errorf("got stamps for %s, want them for the new ones", got)
	}
}

func TestAnEmitterDoesWhatItIsTold(t *testing.T) {
	t.Parallel()
	j := sourcetest.NewJournal()
	_, e := j.Start(nil, nil)
	failure := errors.New("told")
	e.FailEmit(1, failure)
	e.FailFlush(failure)
	if err := e.Emit(t.Context(), records(0, 1), "1"); err != nil {
		t.Errorf("the first Emit returned %v", err)
	}
	if err := e.Emit(t.Context(), records(1, 2), "2"); !errors.Is(err, failure) {
		t.Errorf("the second Emit returned %v", err)
	}
	if err := e.Flush(t.Context()); !errors.Is(err, failure) {
		t.Errorf("Flush returned %v", err)
	}
	_, _ = j.Start(nil, nil)
	if err := e.Emit(t.Context(), nil, ""); !errors.Is(err, sourcetest.ErrFenced) {
		t.Errorf("an Emitter of a dead run returned %v", err)
	}
}
