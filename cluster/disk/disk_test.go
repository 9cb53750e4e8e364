package disk

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// Appends are taken again only when there is more room than there was when they were refused.
func TestRefusingEndsLaterThanItBegins(t *testing.T) {
	t.Parallel()
	faulty := vfs.NewFaulty(vfs.NewMem())
	d := New(Options{ReserveBytes: 1000}, "/", faulty, slog.New(slog.DiscardHandler))
	for i, step := range []struct {
		free    int64
		refuses bool
		lacks   int64
	}{
		{2000, false, 0}, {1000, false, 0}, {999, true, 251}, {1249, true, 1}, {1250, false, 0}, {1000, false, 0}, {0, true, 1250},
	} {
		faulty.Limit(step.free)
		if err := d.Measure(); err != nil {
			t.Fatal(err)
		}
		if err := d.Admit(); errors.Is(err, storage.ErrDiskFull) != step.refuses || d.Lacks() != step.lacks {
			t.Errorf("step %d, %d bytes free: %v, %d bytes are lacking; want refused %v, %d", i, step.free, err, d.Lacks(), step.refuses, step.lacks)
		}
	}
}

// Who has to make room is told once each time.
func TestFullIsToldWhenItBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		faulty := vfs.NewFaulty(vfs.NewMem())
		faulty.Limit(2000)
		d := New(Options{ReserveBytes: 1000}, "/", faulty, slog.New(slog.DiscardHandler))
		told := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(t.Context(), func() { told++ }, func() { t.Error("the disk is said to have stalled") })
		}()
		pass := func(what string, want int) {
			t.Helper()
			time.Sleep(10 * time.Second) // of the bubble
			synctest.Wait()
			if told != want {
				t.Errorf("%s: it was told %d times, want %d", what, told, want)
			}
		}
		pass("at rest", 0)
		faulty.Limit(500)
		pass("full", 1)
		faulty.Limit(2000)
		pass("room again", 1)
		faulty.Limit(500)
		pass("full again", 2)
	})
}
