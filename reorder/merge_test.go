package reorder_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/reorder"
)

func pop(m *reorder.Merge[string]) []string {
	var out []string
	for r, ok := m.Pop(); ok; r, ok = m.Pop() {
		out = append(out, r.Record)
	}
	return out
}

func mustPush(t *testing.T, m *reorder.Merge[string], p reorder.Partition, stamp, pos int64, r string) {
	t.Helper()
	if err := m.Push(p, stamp, pos, r); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, m *reorder.Merge[string], frontier int64, records ...string) {
	t.Helper()
	if diff := cmp.Diff(records, pop(m)); diff != "" {
		t.Fatalf("popped (-want +got):\n%s", diff)
	}
	if got := m.Frontier(); got != frontier {
		t.Fatalf("frontier %d, want %d", got, frontier)
	}
}

func TestMergeWaitsForWhoeverMayBeEarlier(t *testing.T) {
	m := reorder.NewMerge[string]()
	b, a := m.Assign("b", reorder.MinTime), m.Assign("a", reorder.MinTime)
	mustPush(t, m, a, 10, 0, "a10")
	mustPush(t, m, a, 20, 1, "a20")
	want(t, m, reorder.MinTime)
	m.SetFrontier(b, 10) // b may still bring 10, which comes behind a's
	want(t, m, 10, "a10")
	mustPush(t, m, b, 15, 7, "b15")
	want(t, m, 15, "b15")
	m.SetFrontier(b, 20)
	want(t, m, 20, "a20")
	mustPush(t, m, b, 30, 9, "b30")
	m.SetFrontier(a, 30) // a may still bring 30, which comes before b's
	want(t, m, 30)
	m.SetFrontier(a, 31)
	want(t, m, 30, "b30")
	m.End(a)
	m.End(b)
	want(t, m, reorder.MaxTime)
}

func TestMergeStampsNeverGoBack(t *testing.T) {
	m := reorder.NewMerge[string]()
	a := m.Assign("a", 100) // as a checkpoint knows it
	b := m.Assign("b", reorder.MinTime)
	mustPush(t, m, a, 50, 3, "a")
	mustPush(t, m, b, 99, 0, "b")
	m.End(a)
	m.End(b)
	first, _ := m.Pop()
	second, _ := m.Pop()
	if first.Record != "b" || second.Stamp != 100 {
		t.Errorf("popped %+v, %+v, want b, then a with stamp 100", first, second)
	}
}

func TestMergeRefusesPositionsAgainAndRecordsAfterTheEnd(t *testing.T) {
	m := reorder.NewMerge[string]()
	a := m.Assign("a", reorder.MinTime)
	mustPush(t, m, a, 1, 5, "x")
	if err := m.Push(a, 2, 5, "y"); err == nil {
		t.Error("a position was taken twice")
	}
	m.End(a)
	if err := m.Push(a, 2, 6, "z"); err == nil {
		t.Error("a record was taken after the end")
	}
	want(t, m, reorder.MaxTime, "x")
}

func TestMergeForgetsRevokedPartitions(t *testing.T) {
	m := reorder.NewMerge[string]()
	a, b := m.Assign("a", reorder.MinTime), m.Assign("b", reorder.MinTime)
	mustPush(t, m, b, 1, 0, "b1")
	mustPush(t, m, b, 3, 1, "b3")
	if got := m.Missing(); len(got) != 1 || got[0] != a {
		t.Errorf("missing %v, want a", got)
	}
	m.Revoke(a)
	want(t, m, 3, "b1", "b3")
	if again := m.Assign("a", 2); again != a {
		t.Errorf("a came back as %d, was %d", again, a)
	}
	mustPush(t, m, b, 4, 2, "b4")
	want(t, m, 2)
	m.End(a)
	want(t, m, 4, "b4")
}

// TestMergeEqualsSorting feeds partitions at random and compares with a sort.
func TestMergeEqualsSorting(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := randomMix(rng)
		m.badStamps = 0.2
		parts, events := m.make(rng)
		merge, handle := reorder.NewMerge[event](), map[string]reorder.Partition{}
		for _, p := range parts {
			handle[p] = merge.Assign(p, reorder.MinTime)
		}
		byPart := map[string][]event{}
		for _, e := range events {
			byPart[e.part] = append(byPart[e.part], e)
		}
		var got []event
		low := reorder.MinTime
		take := func() {
			for r, ok := merge.Pop(); ok; r, ok = merge.Pop() {
				if r.Stamp < low {
					t.Fatalf("seed %d: stamp %d below the frontier %d", seed, r.Stamp, low)
				}
				got = append(got, r.Record)
			}
			low = merge.Frontier()
		}
		for len(byPart) > 0 {
			for _, p := range parts {
				if all, ok := byPart[p]; ok && rng.IntN(2) == 0 {
					if len(all) == 0 {
						merge.End(handle[p])
						delete(byPart, p)
						continue
					}
					if err := merge.Push(handle[p], all[0].j, all[0].pos, all[0]); err != nil {
						t.Fatal(err)
					}
					byPart[p] = all[1:]
				}
			}
			take()
		}
		if diff := cmp.Diff(canonical(events), got, cmp.AllowUnexported(event{})); diff != "" {
			t.Fatalf("seed %d: order differs (-want +got):\n%s", seed, diff)
		}
	}
}

func BenchmarkMerge8(b *testing.B) {
	m := reorder.NewMerge[uint64]()
	for i := range 8 {
		m.Assign(string(rune('a'+i)), reorder.MinTime)
	}
	b.ReportAllocs()
	i := int64(0)
	measure(b, func() {
		if err := m.Push(reorder.Partition(i&7), i, i>>3, uint64(i)); err != nil {
			b.Fatal(err)
		}
		i++
		for {
			if _, ok := m.Pop(); !ok {
				break
			}
		}
	})
}
