package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !Pause(ctx, 59*time.Second) {
			t.Error("there was time, and the pause says there is none")
		}
		if Pause(ctx, 2*time.Second) {
			t.Error("a pause goes on after its context has ended")
		}
	})
}

func TestTheSameIsToldOnce(t *testing.T) {
	t.Parallel()
	told := Told{}
	for i, step := range []struct {
		subject, text string
		want          bool
	}{
		{"disk", "full", true}, {"disk", "full", false}, {"net", "full", true}, {"disk", "slow", true}, {"disk", "full", true},
	} {
		if got := told.Fresh(step.subject, step.text); got != step.want {
			t.Errorf("step %d: %q of %q is news: %v, want %v", i, step.text, step.subject, got, step.want)
		}
	}
	delete(told, "net")
	if !told.Fresh("net", "full") {
		t.Error("what came back after all was well is no news")
	}
}

func TestTheGistIsTheSameForEachPort(t *testing.T) {
	t.Parallel()
	a, b := errors.New("dial from 127.0.0.1:34567: refused"), errors.New("dial from 127.0.0.1:4568: refused")
	if Gist(a) != Gist(b) {
		t.Errorf("%q and %q", Gist(a), Gist(b))
	}
	if other := errors.New("dial from 127.0.0.1:34567: no route"); Gist(a) == Gist(other) {
		t.Errorf("another error has the gist %q too", Gist(a))
	}
}
