package pipeline

import (
	"context"
	"math"
	"time"
)

// maxAhead bounds the bytes that are read ahead of the slowest partition, in all
// partitions together.
const maxAhead = 64 << 20

// clockMargin is how far the clock of this machine may be before that of a broker or of
// another worker, where nothing but the time says that a stream is silent.
const clockMargin = 5 * time.Second

// balance stops reading partitions that are far ahead of others, and reads them again
// when those have caught up; it also tells the sequencer of partitions at their end.
func (s *session) balance() {
	limit := int64(maxAhead / max(len(s.parts), 1))
	for p, part := range s.reader.parts {
		waiting := s.seq.waiting(p)
		switch {
		case !part.paused && waiting > limit:
			s.reader.client.PauseFetchPartitions(map[string][]int32{p.Stream: {p.Number}})
			part.paused = true
		case part.paused && waiting < limit/2:
			s.reader.client.ResumeFetchPartitions(map[string][]int32{p.Stream: {p.Number}})
			part.paused = false
		}
		if part.done() && !part.ended {
			s.seq.ended(p)
			part.ended = true
		}
	}
}

// advance tells the sequencer how far the append clock has come where nothing was read.
func (s *session) advance(ctx context.Context, idle bool) {
	if s.book == nil {
		return
	}
	now := time.Now()
	for name := range s.streams {
		stamp, ok := s.book.stamp(name, func(number int32) int64 {
			part := s.reader.parts[Partition{Stream: name, Number: number}]
			if part == nil {
				return math.MaxInt64 // another worker's
			}
			return part.next
		}, now)
		if ok {
			s.advanceStream(name, stamp)
		} else if idle {
			s.advanceByTime(ctx, name, now)
		}
	}
}

func (s *session) advanceStream(stream string, stamp int64) {
	for p := range s.reader.parts {
		if p.Stream == stream {
			s.seq.advance(p, stamp)
		}
	}
}

// advanceByTime serves streams to which no source of Daybook appends: where the reader
// is at the end of a partition, what is appended from now on is stamped later than now.
func (s *session) advanceByTime(ctx context.Context, stream string, now time.Time) {
	if now.Sub(s.askedAt[stream]) < time.Second {
		return
	}
	s.askedAt[stream] = now
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ends, err := s.d.journal.Ends(limited, stream)
	if err != nil {
		return // reading will say what is wrong
	}
	for p, end := range ends {
		if part := s.reader.parts[p]; part != nil && part.next >= end {
			s.seq.advance(p, now.Add(-clockMargin).UnixMicro())
		}
	}
}

// measure makes the numbers of the reorderer and of the cursor known.
func (s *session) measure() {
	if time.Since(s.measuredAt) < 200*time.Millisecond {
		return
	}
	s.measuredAt = time.Now()
	held, bytes, watermark := s.seq.held()
	s.d.count.held.Store(held)
	s.d.count.heldBytes.Store(bytes)
	s.d.count.watermark.Store(watermark)
	var read int64
	for _, part := range s.reader.parts {
		read += part.next
	}
	s.d.count.readTo.Store(read)
}
