package kafka_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/retry"
)

// Whatever was answered is there after SIGKILL, once, in order:
// records, transactions, committed offsets, topics.
func TestNothingAnsweredIsLostToSIGKILL(t *testing.T) {
	const kills = 20
	c := newChild(t)
	l := newLoad(t, c.client)
	l.run(func(ctx context.Context) {
		for range kills {
			retry.Pause(ctx, time.Duration(20+rand.IntN(150))*time.Millisecond)
			c.kill()
			c.start()
		}
	})
	c.kill()
	c.start()
	l.check()
}
