package nginx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// errKilled ends a run at any call of the disk.
var errKilled = errors.New("killed")

// world runs sources on a disk on which a logger writes and rotates between any two of
// their calls, kills them at any call, and goes on meanwhile.
type world struct {
	seed    uint64
	rng     *rand.Rand
	disk    *memory
	logger  *logger
	journal *sourcetest.Journal
	config  Config

	all    bool // rotated files are wanted although they were there before
	steps  int  // that the logger still takes before the next turn of the source
	deadly int  // the call at which the run is killed; negative: none
}

func newWorld(t *testing.T, seed uint64) *world {
	disk := newMemory(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	w := &world{seed: seed, rng: rand.New(rand.NewPCG(seed, 3)), disk: disk, logger: newLogger(seed, disk), journal: sourcetest.NewJournal(), deadly: -1}
	pattern := named(0)
	if w.all = w.rng.IntN(2) == 0; w.all {
		pattern += "*"
	}
	section := fmt.Sprintf(`{paths: ['%s'], format: '"$http_a" $msec $status', rotate_wait: 2s}`, pattern)
	if err := configs.Decode("test.yaml", []byte(section), &w.config); err != nil {
		t.Fatal(err)
	}
	disk.meanwhile = w.meanwhile
	if os.Getenv("DAYBOOK_NGINX_SEED") != "" {
		disk.trace = func(format string, args ...any) {
			t.Logf("%s "+format, append([]any{disk.now.Format("15:04:05.000")}, args...)...)
		}
	}
	return w
}

// meanwhile is what happens before a call of the disk.
func (w *world) meanwhile() {
	if w.deadly == 0 {
		w.deadly = -1
		panic(errKilled)
	}
	w.deadly--
	for ; w.steps > 0 && w.rng.IntN(4) == 0; w.steps-- {
		w.disk.now = w.disk.now.Add(time.Duration(w.rng.IntN(3000)) * time.Microsecond)
		w.logger.step()
	}
}

// pass lets time go by; a copy that is being made is not silent for long.
func (w *world) pass() {
	steps := []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 7 * time.Second, 2 * time.Hour}
	n := len(steps)
	if w.logger.copying || w.logger.half != nil {
		n = 3
	}
	if w.rng.IntN(50) > 0 {
		n = min(n, 6)
	}
	w.disk.now = w.disk.now.Add(steps[w.rng.IntN(n)])
}

// run starts a source where the journal says and lets it take a number of turns, or
// be killed, or with once come to the end.
func (w *world) run(t *testing.T, once bool, turns int, turn func()) (err error) {
	source, err := w.config.OpenSource(pipeline.SourceEnv{Name: "web", Once: once, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	from, emitter := w.journal.Start(w.rng, source)
	f := newFollower(source.(*Source), emitter)
	w.disk.trace("a run from %s", from)
	f.disk, f.now, f.sleep = w.disk, func() time.Time { return w.disk.now }, func(d time.Duration) { w.disk.now = w.disk.now.Add(d) }
	defer func() {
		if r := recover(); r != nil && r != any(errKilled) {
			panic(r)
		}
		w.deadly = -1
		w.disk.trace("the run is over: %v", err)
		f.close()
		for _, fault := range emitter.Faults() {
			t.Error(fault)
		}
	}()
	var st state
	if from != "" {
		if st, err = parseState(from); err != nil {
			return err
		}
	}
	if err := f.begin(st, from == ""); err != nil {
		return err
	}
	for range turns {
		turn()
		w.disk.trace("turn: %s", f.describe())
		progress, err := f.round(context.Background())
		if err == nil && !progress && once && f.finished() {
			return f.end(context.Background())
		}
		if err == nil && !progress {
			err = f.rest(context.Background())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// play kills a dozen runs and lets a last one come to the end.
func (w *world) play(t *testing.T) {
	if w.all {
		for range w.rng.IntN(40) {
			w.logger.step() // a log that was there before
		}
	} else if err := w.run(t, false, 1, w.pass); err != nil { // which files are wanted is decided once
		t.Fatalf("seed %d: Run returned %v", w.seed, err)
	}
	for range 4 + w.rng.IntN(10) {
		w.deadly = w.rng.IntN(200)
		if w.rng.IntN(4) == 0 {
			w.deadly = -1
		}
		w.steps = w.rng.IntN(30)
		if err := w.run(t, w.rng.IntN(6) == 0, w.rng.IntN(25), func() { w.pass(); w.steps = w.rng.IntN(20) }); err != nil {
			t.Fatalf("seed %d: Run returned %v", w.seed, err)
		}
		for range w.rng.IntN(30) { // while the source is down
			w.logger.step()
			if w.rng.IntN(5) == 0 {
				w.pass()
			}
		}
	}
	w.logger.finish()
	w.steps, w.deadly = 0, -1
	if err := w.run(t, false, 60, func() { w.disk.now = w.disk.now.Add(time.Second) }); err != nil {
		t.Fatalf("seed %d: Run returned %v", w.seed, err)
	}
}

// check compares the journal with what was logged.
func (w *world) check(t *testing.T) {
	got := map[string]int{}
	last := map[string]int64{}
	for _, r := range w.journal.Records() {
		var v struct {
			A        string `json:"http_a"`
			Unparsed string
		}
		if err := json.Unmarshal(r.Value, &v); err != nil || v.Unparsed != "" || v.A == "" {
			t.Errorf("seed %d: the record at %s is no line: %.300s", w.seed, r.Position, r.Value)
			continue
		}
		if got[v.A]++; got[v.A] > 1 {
			t.Errorf("seed %d: %.20q is in the journal twice, the second time at %s", w.seed, v.A, r.Position)
		}
		at := strings.LastIndexByte(r.Position, '.')
		offset, err := strconv.ParseInt(r.Position[at+1:], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		place := fmt.Sprint(r.Partition, r.Position[:at])
		if before, ok := last[place]; ok && before >= offset {
			t.Errorf("seed %d: %s comes after the offset %d of its file", w.seed, r.Position, before)
		}
		last[place] = offset
	}
	for id := range got {
		if _, ok := w.logger.want[id]; !ok {
			t.Errorf("seed %d: %.20q was never logged", w.seed, id)
		}
	}
	if missing := w.logger.missing(got); len(missing) > 0 {
		t.Errorf("seed %d: %d of %d lines are missing, the first is %.20q", w.seed, len(missing), len(w.logger.lines), missing[0])
	}
}

// TestRotationsBetweenAnyTwoCallsLoseAndRepeatNothing steps through rotations of every
// kind, with something happening between any two calls that the source makes. One seed
// alone: DAYBOOK_NGINX_SEED=17.
func TestRotationsBetweenAnyTwoCallsLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	first, n := uint64(1), uint64(400)
	if v := os.Getenv("DAYBOOK_NGINX_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, n = seed, 1
	} else if v := os.Getenv("DAYBOOK_SEEDS"); v != "" {
		times, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n *= times
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.play(t)
			w.check(t)
			if l := w.logger; t.Failed() {
				t.Logf("seed %d: rotated files wanted %t, of ten rotations %d by copies, packs %d, keeps %d, of ten steps of a copy %d with a line",
					seed, w.all, l.copies, l.pack, l.keep, l.meantime)
			}
		})
	}
}

// describe says what the source knows.
func (w *follower) describe() string {
	var b strings.Builder
	for _, s := range w.series {
		for _, f := range s.files {
			fmt.Fprintf(&b, "%s=%d", f.path[strings.LastIndexByte(f.path, '/')+1:], f.key.Inode)
			if f.id != "" {
				fmt.Fprintf(&b, " %.4s.%d", f.id, f.generation)
			}
			fmt.Fprintf(&b, " at %d", f.offset)
			for name, is := range map[string]bool{"unsure": f.unsure, "late": f.late, "done": f.done, "frozen": f.frozen != nil, "truncated": f.truncated} {
				if is {
					b.WriteString(" " + name)
				}
			}
			b.WriteString("; ")
		}
	}
	return b.String()
}
