package transport

import (
	"testing"
	"time"
)

// A peer is dead to the moment after its last byte; one that was never heard is not.
func TestSilenceIsCountedFromTheLastByte(t *testing.T) {
	t.Parallel()
	s := silence{after: 2 * time.Second, step: 250 * time.Millisecond}
	now := moment(time.Second)
	for i, step := range []struct {
		heard time.Duration // before now; negative: never
		dead  bool
		next  time.Duration
	}{
		{-1, false, 2 * time.Second},
		{500 * time.Millisecond, false, 1500 * time.Millisecond},
		{1990 * time.Millisecond, false, 10 * time.Millisecond},
		{2 * time.Second, true, 2 * time.Second},
	} {
		now += moment(3 * time.Second)
		s.due = now // it is on time
		heard := now - moment(step.heard)
		if step.heard < 0 {
			heard = 0
		}
		if dead, next := s.look(now, heard); dead != step.dead || next != step.next {
			t.Errorf("look %d: dead %v, next in %v; want %v, %v", i, dead, next, step.dead, step.next)
		}
	}
}

// A process that was stopped takes nobody for dead when it goes on: what the others said waits in its sockets. One that is late
// again and again decides all the same.
func TestWhoWasLateItselfLooksAgain(t *testing.T) {
	t.Parallel()
	s := silence{after: 2 * time.Second, step: 250 * time.Millisecond}
	heard := moment(time.Second)
	_, next := s.look(heard, heard)
	now := heard + moment(next) + moment(time.Minute) // it was stopped for a minute
	dead, next := s.look(now, heard)
	if dead || next != s.step {
		t.Fatalf("a minute late: dead %v, next in %v; want another look in %v", dead, next, s.step)
	}
	heard, now = now+1, now+moment(next)
	if dead, _ := s.look(now, heard); dead {
		t.Fatal("dead, though it was heard in between")
	}
	for range mostPutOff {
		now += moment(10 * time.Second)
		if dead, _ := s.look(now, heard); dead {
			t.Fatal("dead, though the process had no time to hear it")
		}
	}
	if dead, _ := s.look(now+moment(10*time.Second), heard); !dead {
		t.Error("a process that is always late never decides")
	}
}
