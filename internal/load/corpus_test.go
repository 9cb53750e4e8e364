package load

import (
	"math"
	"testing"
)

// A figure without its ratio says nothing, so the ratios that the documentation states are held here.
func TestCorporaHaveTheStatedRatios(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		corpus     string
		perBatch   int
		want, near float64
	}{
		{"json", 965, 4.25, 0.1},
		{"constant", 100, 38, 1},
		{"random", 965, 1, 0.05},
	} {
		enc, err := newEncoder("lz4")
		if err != nil {
			t.Fatal(err)
		}
		b := enc.encode(Corpus(c.corpus, 1024), 0, c.perBatch, 0)
		if got := float64(c.perBatch*1024) / float64(len(b.data)); math.Abs(got-c.want) > c.near {
			t.Errorf("%s compresses to %.2f:1, want %.2f:1", c.corpus, got, c.want)
		}
	}
}

func TestCorporaAreTheSameOnEachRun(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"json", "constant", "random"} {
		for _, size := range []int{leastSize, 100, 1024, 5000} {
			a, b := Corpus(kind, size), Corpus(kind, size)
			for i := range a {
				if len(a[i]) != size || string(a[i]) != string(b[i]) {
					t.Fatalf("%s of %d bytes: record %d has %d bytes, or differs between two calls", kind, size, i, len(a[i]))
				}
			}
		}
	}
}
