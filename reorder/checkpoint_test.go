package reorder_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/reorder"
)

// someCheckpoint is one of a run with 48 producers.
func someCheckpoint(t *testing.T) []byte {
	rng := rand.New(rand.NewPCG(4, 4))
	parts, events := mix{parts: 4, producers: 12, records: 5000, delay: 100 * time.Millisecond, holes: true, badStamps: .1}.make(rng)
	d := newDriver(t, 4, reorder.Options{MaxOutOfOrder: time.Second}, parts, events)
	d.run(false)
	d.save()
	return d.saved
}

func TestCheckpointIsSmall(t *testing.T) {
	if n := len(someCheckpoint(t)); n > 1000 {
		t.Errorf("52 sources in 4 partitions take %d bytes, want at most 1000", n)
	} else {
		t.Logf("%d bytes", n)
	}
}

func TestCheckpointEncodingIsExact(t *testing.T) {
	data := someCheckpoint(t)
	var cp reorder.Checkpoint
	if err := cp.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	again, err := cp.MarshalBinary()
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("encoded again it differs: %v", err)
	}
	if cp.Partitions[0].Low >= cp.Partitions[0].Read || len(cp.Sources) < 40 {
		t.Errorf("%+v holds nothing worth a test", cp)
	}
}

func TestDamagedCheckpointsAreRefused(t *testing.T) {
	data := someCheckpoint(t)
	for n := range data {
		var cp reorder.Checkpoint
		if err := cp.UnmarshalBinary(data[:n]); !errors.Is(err, reorder.ErrCheckpoint) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		bad := bytes.Clone(data)
		bad[n] ^= 1 << (n % 8)
		if err := cp.UnmarshalBinary(bad); !errors.Is(err, reorder.ErrCheckpoint) {
			t.Fatalf("byte %d changed: %v", n, err)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		data := reorder.Sealed(body)
		var cp reorder.Checkpoint
		if cp.UnmarshalBinary(data) != nil {
			return
		}
		b, err := reorder.New[int](reorder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(cp); err != nil {
			return
		}
		b.FlushIdle()
		for len(b.Next()) > 0 {
		}
	})
}

// FuzzModel lets the fuzzer choose the seeds of everything.
func FuzzModel(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { sameAsModel(t, seed) })
}

// TestOptionsMayChangeAcrossARestart: what was held comes back whatever the new
// options would have made of it; nothing is lost and nothing comes twice.
func TestOptionsMayChangeAcrossARestart(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		opts, m := randomOptions(rng), randomMix(rng)
		opts.Late = reorder.Side
		parts, events := m.make(rng)
		d := newDriver(t, seed, opts, parts, events)
		d.ticks = true
		for range 5 {
			d.read()
			d.pump()
		}
		d.save()
		d.opts = randomOptions(rng)
		d.opts.Late = reorder.Side
		d.open()
		got := d.run(true)
		seen := map[string]int{}
		for _, os := range [][]output{got.Main, got.Late, got.Quarantine} {
			for _, o := range os {
				seen[fmt.Sprint(o.Part, o.Pos)]++
			}
		}
		for _, e := range events {
			if n := seen[fmt.Sprint(e.part, e.pos)]; n != 1 {
				t.Fatalf("seed %d: record %s:%d came out %d times", seed, e.part, e.pos, n)
			}
		}
	}
}

// TestCheckpointsDoNotDependOnTicks compares the state of two runs that were driven
// differently up to the same record.
func TestCheckpointsDoNotDependOnTicks(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 12))
		opts, m := randomOptions(rng), randomMix(rng)
		parts, events := m.make(rng)
		var saved [2]reorder.Checkpoint
		for i := range saved {
			d := newDriver(t, seed+uint64(i)*77, opts, parts, events)
			d.ticks = i == 1
			d.run(false)
			d.save()
			if err := saved[i].UnmarshalBinary(d.saved); err != nil {
				t.Fatal(err)
			}
		}
		if saved[1].Clock > saved[0].Clock {
			continue // a tick after the last record
		}
		if diff := cmp.Diff(saved[0].Partitions, saved[1].Partitions); diff != "" {
			t.Fatalf("seed %d: partitions differ:\n%s", seed, diff)
		}
		if diff := cmp.Diff(saved[0].Sources, saved[1].Sources); diff != "" {
			t.Fatalf("seed %d: sources differ:\n%s", seed, diff)
		}
	}
}
