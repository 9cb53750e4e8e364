package reorder_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/reorder"
)

// A shape makes endless events whose delays look like real ones. Stamps rise by
// the arrival interval.
type shape struct {
	name  string
	grain int64 // of event times, µs
	delay func(rng *rand.Rand, part int) int64
	parts int
}

var shapes = []shape{
	{"sorted", 1, func(*rand.Rand, int) int64 { return 0 }, 1},
	{"jitter3s", 1, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(2_999_000) }, 1},
	{"skewed8", 1, func(_ *rand.Rand, p int) int64 { return int64(p) * 370_000 }, 8},
	{"exponential", 1, func(rng *rand.Rand, _ int) int64 { return min(2_999_000, int64(rng.ExpFloat64()*200_000)) }, 1},
	{"milliseconds", 1000, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(2_999_000) }, 4},
	{"seconds", 1_000_000, func(rng *rand.Rand, _ int) int64 { return rng.Int64N(1_999_000) }, 4},
	{"stragglers", 1, func(rng *rand.Rand, _ int) int64 {
		if rng.IntN(160) == 0 {
			return 2_900_000
		}
		return 0
	}, 1},
}

// input is a stretch of a shape that is used again and again, with its times moved
// on, so that making events costs next to nothing.
type input struct {
	records []reorder.Record[uint64]
	span    int64
}

func (s shape) make(perSecond int) input {
	const n = 1 << 18
	rng := rand.New(rand.NewPCG(1, 2))
	step := int64(1_000_000 / perSecond)
	in := input{span: n * step}
	// The stretch covers whole grains, so that moved times stay on the grain.
	in.span = (in.span + s.grain - 1) / s.grain * s.grain
	for i := range n {
		p := i % s.parts
		j := int64(i) * step
		t := j - s.delay(rng, p)
		t -= ((t % s.grain) + s.grain) % s.grain
		in.records = append(in.records, reorder.Record[uint64]{Partition: reorder.Partition(p), Stamp: j, Time: t, Size: 100, Payload: uint64(i)})
	}
	return in
}

func newBenchBuffer[P any](b *testing.B, o reorder.Options, parts int) *reorder.Buffer[P] {
	buf, err := reorder.New[P](o)
	if err != nil {
		b.Fatal(err)
	}
	for p := range parts {
		buf.Assign(fmt.Sprintf("p%d", p))
	}
	return buf
}

// BenchmarkBuffer pushes one record and drains per operation. Held records per
// operation follow from the rate: 3 s at 10k/s are 30k, at 500k/s 1.5M.
func BenchmarkBuffer(b *testing.B) {
	for _, rate := range []int{10_000, 500_000, 1_000_000} {
		for _, s := range shapes {
			b.Run(fmt.Sprintf("%s/%dk", s.name, rate/1000), func(b *testing.B) {
				s.run(b, rate, reorder.Options{MaxOutOfOrder: 3 * time.Second, CapBytes: 4 << 30})
			})
		}
	}
}

// cpuTime is the CPU time of the process in ns, which a busy machine disturbs less
// than the clock.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// measure reports, besides the mean, the CPU time and what the best tenth of short
// windows took: on a machine that others use, that is closest to its own cost.
func measure(b *testing.B, step func()) {
	const window = 4096
	var windows []float64
	cpu, from, n := cpuTime(), time.Now(), 0
	for b.Loop() {
		step()
		if n++; n%window == 0 {
			now := time.Now()
			windows = append(windows, float64(now.Sub(from))/window)
			from = now
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
	if len(windows) > 0 {
		slices.Sort(windows)
		b.ReportMetric(windows[len(windows)/100], "best-ns/op")
	}
}

func (s shape) run(b *testing.B, rate int, o reorder.Options) {
	in := s.make(rate)
	buf := newBenchBuffer[uint64](b, o, s.parts)
	base, pos := int64(1_700_000_000_000_000), int64(0)
	i, last := 0, reorder.MinTime
	step := func() {
		r := in.records[i]
		r.Stamp += base
		r.Time += base
		r.Position = pos
		pos++
		if err := buf.Push(r); err != nil {
			b.Fatal(err)
		}
		for g := buf.Next(); len(g) > 0; g = buf.Next() {
			for k := range g {
				if g[k].Time < last {
					b.Fatal("out of order")
				}
				last = g[k].Time
			}
		}
		if i++; i == len(in.records) {
			i, base = 0, base+in.span
		}
	}
	warm := 2 * rate * int((o.MaxOutOfOrder+time.Second)/time.Second)
	for range warm {
		step()
	}
	b.ReportAllocs()
	measure(b, step)
	m := buf.Metrics()
	b.ReportMetric(float64(m.HeldRecords), "held")
	if m.InversionsOut > 0 || m.Late > m.Pushed/100 {
		b.Fatalf("%d inversions, %d of %d late", m.InversionsOut, m.Late, m.Pushed)
	}
}

// BenchmarkNull is the harness alone: the part of BenchmarkBuffer that is not the
// buffer's.
func BenchmarkNull(b *testing.B) {
	in := shapes[1].make(10_000)
	base, pos := int64(1_700_000_000_000_000), int64(0)
	i, last := 0, reorder.MinTime
	var ring [32]reorder.Record[uint64]
	measure(b, func() {
		r := in.records[i]
		r.Stamp += base
		r.Time += base
		r.Position = pos
		pos++
		ring[pos&31] = r
		last = max(last, ring[pos&31].Time)
		if i++; i == len(in.records) {
			i, base = 0, base+in.span
		}
	})
	if last < 0 {
		b.Fatal("no events")
	}
}
