package reorder_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/reorder"
)

// TestReplayIsLiveIsCrashed runs three partitions, 400 records,
// exponential delays, gaps and poison, in three configurations. A live run with
// ticks at any pace, a replay without ticks and a run that is killed three times
// give the same three streams, and cut them at the same places.
func TestReplayIsLiveIsCrashed(t *testing.T) {
	configs := map[string]reorder.Options{
		"event":  {MaxOutOfOrder: 500 * time.Millisecond, IdleAfter: 2 * time.Second},
		"source": {MaxOutOfOrder: 500 * time.Millisecond, IdleAfter: 2 * time.Second, Order: reorder.OrderSource, Late: reorder.Pass},
		"tight":  {MaxOutOfOrder: 100 * time.Millisecond, IdleAfter: 150 * time.Millisecond, Hold: 300 * time.Millisecond, CapBytes: 4000, Implausible: reorder.Side},
	}
	m := mix{parts: 3, records: 400, delay: 200 * time.Millisecond, gap: 5 * time.Second, poison: 0.02}
	for name, opts := range configs {
		t.Run(name, func(t *testing.T) {
			var late, quarantined, killed int
			for seed := range uint64(200) {
				parts, events := m.make(rand.New(rand.NewPCG(seed, 3)))
				live := newDriver(t, seed, opts, parts, events)
				live.ticks = true
				replay := newDriver(t, seed+1000, opts, parts, events)
				crashed := newDriver(t, seed+2000, opts, parts, events)
				crashed.ticks, crashed.kills = true, 3
				want := hash(live.run(true))
				if got := hash(replay.run(true)); got != want {
					t.Fatalf("seed %d: replay gives %s, live %s", seed, got, want)
				}
				if got := hash(crashed.run(true)); got != want {
					t.Fatalf("seed %d: crashed run gives %s, live %s", seed, got, want)
				}
				if diff := cmp.Diff(live.cuts, replay.cuts); diff != "" {
					t.Fatalf("seed %d: boundaries differ (-live +replay):\n%s", seed, diff)
				}
				if diff := cmp.Diff(live.cuts, crashed.cuts); diff != "" {
					t.Fatalf("seed %d: boundaries differ (-live +crashed):\n%s", seed, diff)
				}
				late += len(live.out.Late)
				quarantined += len(live.out.Quarantine)
				killed += crashed.killed
			}
			t.Logf("%d late, %d in quarantine, %d kills", late, quarantined, killed)
			if killed < 300 {
				t.Errorf("only %d kills in 200 runs: the trial shows too little", killed)
			}
		})
	}
}

func hash(o outputs) string {
	return fmt.Sprintf("main %x late %x quarantine %x", digest(o.Main), digest(o.Late), digest(o.Quarantine))
}

func digest(os []output) []byte {
	h := sha256.New()
	for _, o := range os {
		fmt.Fprintf(h, "%+v %s\n", struct {
			P, S       string
			A, B, C, D int64
			F, G, H    bool
		}{o.Part, o.Source, o.Pos, o.Ts, o.Time, o.Late, o.Forced, o.Passed, o.Clamped}, o)
	}
	return h.Sum(nil)[:8]
}
