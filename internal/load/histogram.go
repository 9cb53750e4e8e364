package load

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	subBits = 7 // values are kept to 1/128
	buckets = (64 - subBits) << subBits
)

// Histogram counts durations with an error below 1 %. It is safe for concurrent use.
type Histogram struct {
	counts [buckets]atomic.Int64
	most   atomic.Int64
}

// Add counts n durations.
func (h *Histogram) Add(d time.Duration, n int64) {
	ns := max(int64(d), 0)
	h.counts[bucketOf(ns)].Add(n)
	for old := h.most.Load(); ns > old && !h.most.CompareAndSwap(old, ns); old = h.most.Load() {
	}
}

func bucketOf(ns int64) int {
	shift := max(bits.Len64(uint64(ns))-subBits-1, 0)
	return shift<<subBits + int(ns>>shift)
}

// topOf is the largest value of a bucket.
func topOf(bucket int) int64 {
	shift := max(bucket>>subBits-1, 0)
	return (int64(bucket-shift<<subBits)+1)<<shift - 1
}

// Latency is how long answers took, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p99_9_ms"`
	Max   float64 `json:"max_ms"`
}

// Latency returns what was counted, nil if nothing was.
func (h *Histogram) Latency() *Latency {
	var total int64
	for i := range h.counts {
		total += h.counts[i].Load()
	}
	if total == 0 {
		return nil
	}
	most := h.most.Load()
	quantile := func(q float64) float64 {
		left := int64(q * float64(total))
		for i := range h.counts {
			if left -= h.counts[i].Load(); left < 0 {
				return millis(min(topOf(i), most))
			}
		}
		return millis(most)
	}
	return &Latency{Count: total, P50: quantile(.5), P99: quantile(.99), P999: quantile(.999), Max: millis(most)}
}

func millis(ns int64) float64 { return float64(ns) / 1e6 }
