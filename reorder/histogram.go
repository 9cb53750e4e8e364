package reorder

import "math/bits"

const (
	subBits    = 4 // 16 steps an octave: a quantile is at most 6 % too high
	subBuckets = 1 << subBits
)

// A Histogram counts durations in µs in buckets whose width grows with the value.
// The zero value is empty.
type Histogram struct {
	counts [(64 - subBits) * subBuckets]uint64
	max    int64
}

func (h *Histogram) add(v int64) {
	h.counts[bucketOf(v)]++
	h.max = max(h.max, v)
}

// bucketOf counts single microseconds up to 16 and then 16 buckets an octave.
func bucketOf(v int64) int {
	u := uint64(v)
	if u < subBuckets {
		return int(u)
	}
	shift := bits.Len64(u) - 1 - subBits
	return shift<<subBits + int(u>>shift)
}

// bucketTop returns the greatest value of a bucket.
func bucketTop(i int) int64 {
	if i < 2*subBuckets {
		return int64(i)
	}
	shift := i>>subBits - 1
	return int64(uint64(i-shift<<subBits+1)<<shift - 1)
}

// Count returns how many values were added.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Max returns the greatest value added, exactly.
func (h *Histogram) Max() int64 { return h.max }

// Quantile returns a value that at least the share q (0 to 1) of all values do not
// exceed; it is at most one sixteenth too high. It returns 0 when empty.
func (h *Histogram) Quantile(q float64) int64 {
	share := q * float64(h.Count())
	want := uint64(share)
	if float64(want) < share {
		want++
	}
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= want && n > 0 {
			return min(bucketTop(i), h.max)
		}
	}
	return h.max
}
