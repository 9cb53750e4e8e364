package load

import (
	"math"
	"testing"
	"time"
)

func TestQuantilesAreWithinAPercent(t *testing.T) {
	t.Parallel()
	var h Histogram
	if h.Latency() != nil {
		t.Error("nothing was counted, and yet there is a latency")
	}
	for i := range 100_000 {
		h.Add(time.Duration(i+1)*time.Microsecond, 1)
	}
	l := h.Latency()
	for name, c := range map[string]struct{ got, want float64 }{
		"p50": {l.P50, 50}, "p99": {l.P99, 99}, "p99.9": {l.P999, 99.9}, "most": {l.Max, 100},
	} {
		if math.Abs(c.got-c.want) > c.want/100 {
			t.Errorf("%s is %.3f ms, want %.3f", name, c.got, c.want)
		}
	}
	for _, d := range []time.Duration{0, -1, 1, 255, 256, 257, time.Hour, math.MaxInt64} {
		if b := bucketOf(max(int64(d), 0)); b >= buckets || topOf(b) < int64(d) {
			t.Errorf("%d ns are counted in bucket %d of %d, which ends at %d", d, b, buckets, topOf(b))
		}
	}
}
