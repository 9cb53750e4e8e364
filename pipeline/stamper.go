package pipeline

import (
	"sync/atomic"
	"time"
)

// stamper issues append stamps: strictly rising, at or above the clock as long as
// the clock rises. All sources of a process that append to one stream share one. It
// is safe for concurrent use; the zero value is ready.
type stamper struct {
	last atomic.Int64
}

// next returns a stamp above all before.
func (s *stamper) next() int64 { return s.reserve(1) }

// reserve returns the first of n consecutive stamps above all before.
func (s *stamper) reserve(n int) int64 {
	now := time.Now().UnixMicro()
	for {
		last := s.last.Load()
		first := max(now, last+1)
		if s.last.CompareAndSwap(last, first+int64(n)-1) {
			return first
		}
	}
}

// raise makes all later stamps greater than floor.
func (s *stamper) raise(floor int64) {
	for {
		last := s.last.Load()
		if floor <= last || s.last.CompareAndSwap(last, floor) {
			return
		}
	}
}
