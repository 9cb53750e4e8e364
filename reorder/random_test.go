package reorder_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/reorder"
)

// A mix says what a random input is made of.
type mix struct {
	parts, producers, records int
	delay                     time.Duration // mean of the exponential delay
	skew                      time.Duration // between partitions
	gap                       time.Duration // a silence now and then
	poison                    float64
	badStamps                 float64 // stamps that fall back
	holes                     bool    // in the positions
	coarse                    int64   // grain of event times in µs
}

// make returns events in the order of their partitions' positions.
func (m mix) make(rng *rand.Rand) ([]string, []event) {
	parts := make([]string, m.parts)
	for i := range parts {
		parts[i] = string(rune('A' + i))
	}
	rng.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
	now := int64(1_700_000_000_000_000)
	next := map[string]int64{}
	var events []event
	for range m.records {
		now += 1 + rng.Int64N(20_000)
		if m.gap > 0 && rng.IntN(60) == 0 {
			now += rng.Int64N(m.gap.Microseconds())
		}
		i := rng.IntN(m.parts)
		p := parts[i]
		e := event{part: p, pos: next[p], j: now, size: uint32(rng.IntN(200))}
		next[p]++
		if m.holes && rng.IntN(5) == 0 {
			next[p] += rng.Int64N(3000)
		}
		if m.producers > 0 && rng.IntN(8) > 0 {
			e.source = fmt.Sprintf("h%d", rng.IntN(m.producers))
		}
		e.ts = now - int64(rng.ExpFloat64()*float64(m.delay.Microseconds())) - int64(i)*m.skew.Microseconds()
		if m.coarse > 0 {
			e.ts -= e.ts % m.coarse
		}
		if rng.Float64() < m.poison {
			e.ts = []int64{0, 1, -5, now * 1000, now + 86_400_000_000, now / 1000}[rng.IntN(6)]
		}
		if rng.Float64() < m.badStamps {
			e.j -= rng.Int64N(50_000)
		}
		events = append(events, e)
	}
	return parts, events
}

func randomOptions(rng *rand.Rand) reorder.Options {
	o := reorder.Options{
		MaxOutOfOrder: []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond, 5 * time.Second}[rng.IntN(5)],
		Late:          []reorder.Disposal{reorder.Side, reorder.Pass, reorder.Drop}[rng.IntN(3)],
		Implausible:   []reorder.Disposal{reorder.Clamp, reorder.Clamp, reorder.Side}[rng.IntN(3)],
		Order:         reorder.Order(rng.IntN(2)),
	}
	o.IdleAfter = max(time.Millisecond, o.MaxOutOfOrder*time.Duration(1+rng.IntN(4)))
	o.Hold = max(2*time.Millisecond, o.MaxOutOfOrder*time.Duration(1+rng.IntN(12)))
	if rng.IntN(4) == 0 {
		o.CapBytes = 200 + rng.Int64N(5000)
	}
	if rng.IntN(4) == 0 {
		o.IdleAfter = time.Hour // a silent partition holds until the hold limit
	}
	b, err := reorder.New[int](o)
	if err != nil {
		panic(err)
	}
	return b.Options()
}

func randomMix(rng *rand.Rand) mix {
	ms := func(n int64) time.Duration { return time.Duration(rng.Int64N(n)) * time.Millisecond }
	m := mix{parts: 1 + rng.IntN(4), producers: rng.IntN(4), records: 50 + rng.IntN(350), delay: ms(200), holes: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		m.poison = 0.05
	}
	if rng.IntN(3) == 0 {
		m.badStamps = 0.1
	}
	if rng.IntN(2) == 0 {
		m.gap = 1 + ms(20_000)
	}
	if rng.IntN(2) == 0 {
		m.skew = ms(8000)
	}
	m.coarse = []int64{0, 1000, 100_000, 1_000_000}[rng.IntN(4)]
	return m
}

// TestSameAsTheModel drives the buffer in every way at once, with ticks, settling
// and kills at random, and compares each stream with the executable contract.
func TestSameAsTheModel(t *testing.T) {
	for seed := range uint64(1000) {
		if !sameAsModel(t, seed) {
			return
		}
	}
}

func sameAsModel(t *testing.T, seed uint64) bool {
	rng := rand.New(rand.NewPCG(seed, 0))
	opts, m := randomOptions(rng), randomMix(rng)
	parts, events := m.make(rng)
	want := newModel(opts, parts).run(canonical(events), true)
	d := newDriver(t, seed, opts, parts, events)
	d.ticks, d.kills = rng.IntN(3) > 0, rng.IntN(4)
	got := d.run(true)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seed %d, %+v, %+v: output differs from the model (-want +got):\n%s", seed, opts, m, diff)
		return false
	}
	return true
}

// TestEveryRecordComesOutOnce holds for any options: nothing is lost, nothing twice.
func TestEveryRecordComesOutOnce(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		opts, m := randomOptions(rng), randomMix(rng)
		opts.Late = reorder.Side
		parts, events := m.make(rng)
		d := newDriver(t, seed, opts, parts, events)
		d.ticks, d.kills = true, 3
		got := d.run(true)
		seen := map[string]int{}
		for _, o := range slices.Concat(got.Main, got.Late, got.Quarantine) {
			seen[fmt.Sprint(o.Part, o.Pos)]++
		}
		for _, e := range events {
			if n := seen[fmt.Sprint(e.part, e.pos)]; n != 1 {
				t.Fatalf("seed %d: record %s:%d came out %d times", seed, e.part, e.pos, n)
			}
		}
	}
}
