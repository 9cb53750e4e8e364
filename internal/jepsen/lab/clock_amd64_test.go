//go:build linux

package lab_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/jepsen/lab"
)

// clockOn starts a process that tells the time on a machine and returns a way to ask it: how far its time of day is ahead
// of this machine's, at least and at most.
func clockOn(t *testing.T, l *lab.Lab, machine int) (*lab.Process, func() (atLeast, atMost time.Duration, passed time.Duration)) {
	t.Helper()
	address := l.Machine(machine).Address().String() + ":13"
	p, err := l.Machine(machine).Start(os.Args[0], "time", address)
	if err != nil {
		t.Fatal(err)
	}
	return p, func() (atLeast, atMost, passed time.Duration) {
		t.Helper()
		var is times
		var before, after time.Time
		eventually(t, "the process tells the time", func() error {
			before = time.Now()
			c, err := l.Dial(t.Context(), "tcp", address)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
				return err
			}
			err = json.NewDecoder(c).Decode(&is)
			after = time.Now()
			return err
		})
		return is.Day.Sub(after.Round(0)), is.Day.Sub(before.Round(0)), is.Passed
	}
}

func TestClocksJumpWhileTimePasses(t *testing.T) {
	t.Parallel()
	l := open(t, 2)
	p, ask := clockOn(t, l, 1)
	_, other := clockOn(t, l, 2)
	began := time.Now()
	holds := func(what string, shift time.Duration, ask func() (_, _, _ time.Duration)) {
		t.Helper()
		atLeast, atMost, passed := ask()
		if shift < atLeast || shift > atMost {
			t.Errorf("%s: the time of day is ahead by %s to %s, want %s", what, atLeast, atMost, shift)
		}
		if most := time.Since(began) + patience; passed < 0 || passed > most {
			t.Errorf("%s: %s have passed for the process, at most %s really", what, passed, most)
		}
	}
	holds("at the start", 0, ask)
	for _, shift := range []time.Duration{time.Hour, -time.Hour, 12*time.Hour + 345*time.Millisecond, -time.Nanosecond, -72*time.Hour - 999_999_999, 0, time.Minute} {
		if err := l.Machine(1).SetClock(shift); err != nil {
			t.Fatal(err)
		}
		holds("after a jump", shift, ask)
		holds("another machine", 0, other)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	_, ask = clockOn(t, l, 1)
	holds("a process that starts later", time.Minute, ask)
	if err := l.Machine(1).SetClock(0); err != nil {
		t.Errorf("one of two processes has ended: %v", err)
	}
	holds("set right", 0, ask)
}
