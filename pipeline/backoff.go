package pipeline

import (
	"context"
	"time"
)

// backoff is how long to wait before trying again: doubling, up to most. The zero
// value begins at 100 ms and ends at 15 s.
type backoff struct {
	least, most time.Duration
	tries       int
}

// next waits, or returns ctx's error.
func (b *backoff) next(ctx context.Context) error {
	least, most := b.least, b.most
	if least == 0 {
		least = 100 * time.Millisecond
	}
	if most == 0 {
		most = 15 * time.Second
	}
	d := min(least<<min(b.tries, 20), most)
	b.tries++
	return pause(ctx, d)
}

// reset begins anew.
func (b *backoff) reset() { b.tries = 0 }
