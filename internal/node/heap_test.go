package node

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestTheHeapHasAFloorWhileThereIsWork(t *testing.T) {
	h := &heap{}
	second := time.Second
	for i, step := range []struct {
		bytes, goroutines float64
		passed            time.Duration
		want              turn
	}{
		{0, 0, quietAfter, rest}, // there was none before
		{busyRate - 1, 0, second, nothing},
		{2 * busyRate, changingRate, second, nothing}, // what comes now stays
		{busyRate, changingRate - 1, second, work},
		{busyRate, changingRate - 1, second, nothing},
		{busyRate, changingRate, second, change},
		{busyRate, changingRate, second, nothing},
		{busyRate, -changingRate, second, nothing}, // and leaves pages behind that nothing else is on
		{busyRate, 0, second, work},
		{busyRate, 0, second, nothing},
		{0, 0, quietAfter - 2*second, nothing},
		{100 * quietRate, 0, second, nothing}, // it was not quiet all in all
		{3 * quietRate, 0, second, nothing},   // a little, now and then, is
		{0, 0, quietAfter - second, rest},
		{0, 0, quietAfter, nothing},
		{1.5 * quietRate * quietAfter.Seconds(), 0, quietAfter, nothing}, // neither
		{0, 0, quietAfter, rest},
		{0, -changingRate, second, nothing},
		{0, 0, quietAfter - second, nothing},
		{0, 0, second, rest}, // once more, after that
		{2 * busyRate, 0, 2 * second, work},
	} {
		if got := h.look(heapUse{step.bytes, step.goroutines}, step.passed); got != step.want {
			t.Errorf("step %d: got %d, want %d", i, got, step.want)
		}
	}
}

// The floor moves the collector's goal, and takes no memory, put in again neither.
func TestTheFloorIsNeverTouched(t *testing.T) {
	goal := func() int64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	resident := func() (bytes int64) {
		statm, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(statm), new(int64), &bytes); err != nil {
			t.Fatal(err)
		}
		return bytes * int64(os.Getpagesize())
	}
	h := &heap{}
	for range 2 {
		h.lower()
		low, before := goal(), resident()
		h.raise()
		if high := goal(); high < low+heapFloor {
			t.Errorf("the goal is %d bytes with the floor and %d without it", high, low)
		}
		if grown := resident() - before; grown > heapFloor/2 {
			t.Errorf("the floor took %d bytes", grown)
		}
	}
	runtime.KeepAlive(h)
}
