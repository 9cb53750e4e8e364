package kafka

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func producing(l *line, patience time.Duration) *produceCall {
	return &produceCall{line: l, waiting: 1, deadline: time.Now().Add(patience)}
}

func nothing() error { return nil }

// A wake-up that is lost leaves a client waiting for an answer that is there.
func TestRequestsAreAnsweredInOrderWheneverTheyAreStored(t *testing.T) {
	t.Parallel()
	l := newLine()
	const n = 20_000
	var both sync.WaitGroup
	both.Go(func() {
		var storing sync.WaitGroup
		for i := range n {
			p := pending{request: &request{header: header{correlation: int32(i)}}}
			if i%3 > 0 {
				c := producing(l, time.Minute)
				c.correlation = int32(i)
				p = pending{produce: c}
				if rand.IntN(2) == 0 {
					c.finish() // before it is in line
				} else {
					storing.Go(c.finish)
				}
			}
			if err := l.put(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
		storing.Wait()
	})
	for i := range n {
		p, ok, err := l.take(nothing)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		got := int32(-1)
		if p.produce != nil {
			got = p.produce.correlation
		} else {
			got = p.request.correlation
		}
		if got != int32(i) {
			t.Fatalf("request %d is answered where %d should be", got, i)
		}
	}
	both.Wait()
}

func TestAClientIsAnsweredWhenItsPatienceIsOver(t *testing.T) {
	t.Parallel()
	l := newLine()
	start := time.Now()
	for _, patience := range []time.Duration{50 * time.Millisecond, 150 * time.Millisecond} {
		if err := l.put(t.Context(), pending{produce: producing(l, patience)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, least := range []time.Duration{50 * time.Millisecond, 150 * time.Millisecond} {
		if _, ok, err := l.take(nothing); !ok || err != nil || time.Since(start) < least {
			t.Errorf("answered after %v (%v, %v), want %v at least", time.Since(start), ok, err, least)
		}
	}
}

func TestTheWriterFlushesBeforeItSleepsAndWakesAtTheEnd(t *testing.T) {
	t.Parallel()
	l := newLine()
	idle := make(chan struct{}, 10)
	ended := make(chan bool, 1)
	go func() {
		_, ok, _ := l.take(func() error { idle <- struct{}{}; return nil })
		ended <- ok
	}()
	<-idle
	l.end()
	if <-ended {
		t.Error("there is a request in a line that has ended")
	}
	failed := errors.New("the client is gone")
	if _, _, err := newLine().take(func() error { return failed }); err != failed {
		t.Errorf("got %v, want what flushing said", err)
	}
}

func TestAFullLineHoldsItsReaderBack(t *testing.T) {
	t.Parallel()
	l := newLine()
	ctx, cancel := context.WithCancel(t.Context())
	for range inFlight {
		if err := l.put(ctx, pending{request: &request{}}); err != nil {
			t.Fatal(err)
		}
	}
	held := make(chan error, 1)
	go func() { held <- l.put(ctx, pending{request: &request{}}) }()
	if _, ok, _ := l.take(nothing); !ok {
		t.Fatal("nothing in line")
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
	cancel()
	if err := l.put(ctx, pending{request: &request{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("put into a full line whose connection has ended: %v", err)
	}
}
