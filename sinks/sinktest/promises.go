package sinktest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
)

func testVisible(t *testing.T, s Suite) {
	d := s.New(t)
	r := open(t, d, NewEnv(t))
	r.resume()
	batch, rows := things(s, 250)
	r.write(batch[:100]...)
	r.write(batch[100:]...)
	r.flush(250)
	want(t, s, d, rows...)
}

func testClose(t *testing.T, s Suite) {
	d := s.New(t)
	batch, rows := things(s, 20)
	r := open(t, d, NewEnv(t))
	r.resume()
	r.write(batch[:10]...)
	r.flush(10)
	r.write(batch[10:]...)
	r.close()
	want(t, s, d, rows[:10]...)
}

func testEmptyFlush(t *testing.T, s Suite) {
	d := s.New(t)
	r := open(t, d, NewEnv(t))
	r.resume()
	r.flush(0)
	r.flush(7)
	want(t, s, d)
	r.close()
	if c, ok := open(t, d, NewEnv(t)).resume(); ok && c.Offsets[pipeline.Partition{Stream: Stream}] != 7 {
		t.Errorf("after a flush of nothing up to 7 the destination resumes at %v", c.Offsets)
	}
}

// testOutage breaks the destination before each of several flushes: the same Flush must
// fail with an error that is no verdict, and succeed once the destination is back.
func testOutage(t *testing.T, s Suite) {
	d := s.New(t)
	batch, rows := things(s, 60)
	r := open(t, d, NewEnv(t))
	r.resume()
	for i := range 3 {
		mend := d.Break(t)
		r.write(batch[i*20 : i*20+20]...)
		for range 3 {
			wantTransient(t, r.sink.Flush(t.Context(), UpTo(int64(i*20+20))))
		}
		mend()
		r.flush(int64(i*20 + 20))
		want(t, s, d, rows[:i*20+20]...)
	}
}

func testCancel(t *testing.T, s Suite) {
	d := s.New(t)
	batch, rows := things(s, 30)
	r := open(t, d, NewEnv(t))
	r.resume()
	r.write(batch...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.sink.Flush(ctx, UpTo(30)); err != nil {
		wantTransient(t, err)
		r.flush(30)
	}
	want(t, s, d, rows...)
}

// wantTransient fails the test unless err asks for nothing but another Flush.
func wantTransient(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("Flush succeeded though the destination can't have taken anything")
	}
	if errors.As(err, new(*pipeline.StopError)) || errors.As(err, new(*pipeline.RejectedError)) {
		t.Fatalf("Flush gave up what it only had to try again: %v", err)
	}
}

func testValues(t *testing.T, s Suite) {
	d := s.New(t)
	r := open(t, d, NewEnv(t))
	r.resume()
	var rows []Row
	for i, v := range []string{
		"", " ", "null", "\"quoted\" \\ back", "line\nfeed\r\n\ttab", "Grüße 世界 🎉", "\u2028\u0000\u0001",
		"{\"index\":{}}\n{\"x\":1}", "*3\r\n$3\r\nSET", strings.Repeat("long ", 60_000), "18446744073709551615",
	} {
		row := Row{"value-" + string(rune('a'+i)), v}
		rows = append(rows, row)
		r.write(record(s, int64(i), row))
	}
	r.flush(int64(len(rows)))
	want(t, s, d, rows...)
}

// testRestart ends a run with records written and not flushed, and starts again where
// the checkpoint says; a destination without a cursor gets all of it again.
func testRestart(t *testing.T, s Suite) {
	d := s.New(t)
	batch, rows := things(s, 90)
	next := int64(0)
	for end := int64(30); end <= 90; end += 30 {
		r := open(t, d, NewEnv(t))
		if c, ok := r.resume(); ok {
			if at := c.Offsets[pipeline.Partition{Stream: Stream}]; at != next {
				t.Fatalf("the destination resumes at %d, flushed was %d", at, next)
			}
		} else {
			next = 0
		}
		r.write(batch[next:end]...)
		r.flush(end)
		next = end
		if end < 90 {
			r.write(batch[end : end+10]...)
		}
		r.close()
		want(t, s, d, rows[:end]...)
	}
}

func testForeign(t *testing.T, s Suite) {
	d := s.New(t)
	batch, rows := things(s, 5)
	r := open(t, d, NewEnv(t))
	r.resume()
	r.write(batch...)
	r.flush(5)
	r.close()

	other := NewEnv(t)
	other.Streams = []pipeline.StreamID{{Name: Stream, ID: "fedcba9876543210"}}
	wantRefused(t, d, other, batch)
	later := NewEnv(t)
	later.Epoch = 1
	wantRefused(t, d, later, batch)
	want(t, s, d, rows...)
}

// wantRefused fails the test unless a run with this env stops before it writes.
func wantRefused(t *testing.T, d Destination, env pipeline.SinkEnv, batch []pipeline.Delivery) {
	t.Helper()
	r := open(t, d, env)
	defer r.close()
	var err error
	if resumer, ok := r.sink.(pipeline.Resumer); ok {
		_, _, err = resumer.Resume(t.Context())
	}
	if err == nil {
		r.write(batch...)
		err = r.sink.Flush(t.Context(), UpTo(int64(len(batch))))
	}
	var stop *pipeline.StopError
	if !errors.As(err, &stop) {
		t.Fatalf("a target of another stream or epoch was taken: %v", err)
	}
	if stop.Code == "" || stop.Fix == "" {
		t.Errorf("the refusal has no code or no fix: %v", err)
	}
}

func testShadow(t *testing.T, s Suite) {
	d := s.New(t)
	batch, rows := things(s, 8)
	live := open(t, d, NewEnv(t))
	live.resume()
	live.write(batch[:4]...)
	live.flush(4)

	config := d.Config(t)
	if err := config.Into("shadow"); err != nil {
		t.Fatal(err)
	}
	env := NewEnv(t)
	env.Epoch = 1
	shadow := openConfig(t, config, env)
	if _, ok := shadow.resume(); ok {
		t.Error("a new shadow resumes at the live target's cursor")
	}
	shadow.write(batch...)
	shadow.flush(8)
	want(t, s, d, rows[:4]...)
}
