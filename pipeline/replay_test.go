package pipeline_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

// shadowed is a sink with a live and a shadow destination.
type shadowed struct {
	live, shadow *destination
	into         *string
	resume       bool
	env          *pipeline.SinkEnv
}

func (s shadowed) Fields(*configs.Fields) {}

func (s shadowed) Into(target string) error {
	*s.into = target
	return nil
}

func (s shadowed) OpenSink(env pipeline.SinkEnv) (pipeline.Sink, error) {
	to := s.live
	if *s.into != "" {
		to = s.shadow
	}
	return memory{to: to, resume: s.resume, env: s.env}.OpenSink(env)
}

func newShadowed() shadowed {
	return shadowed{live: &destination{}, shadow: &destination{}, into: new(string), env: &pipeline.SinkEnv{}}
}

func replayFile(s shadowed, change ...func(*pipeline.SinkEntry)) *pipeline.File {
	e := sinkEntry("a", memory{}, change...)
	e.Config = s
	return sinkFile(e)
}

func mustParse(t *testing.T, text string) pipeline.Bound {
	t.Helper()
	if text == "" {
		return pipeline.Bound{}
	}
	p, err := pipeline.ParsePlace(text)
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.Bound{Time: p.Time, Offsets: p.Offsets}
}

func TestReplayDeliversExactlyTheStretch(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	// Event times are out of order and one record was appended an hour late.
	fill(t, c, "numbers", 2,
		tick("a0", 0, 0, 0), tick("a10", 0, 10, 10), tick("a8", 0, 8, 11), tick("a20", 0, 20, 20), tick("a12", 0, 12, 3600),
		tick("b5", 1, 5, 5), tick("b15", 1, 15, 15), tick("b9.9995", 1, 9.9995, 16))
	cases := []struct {
		from, to, want string
		order          bool
	}{
		{"", "", "a0 a10 a12 a20 a8 b15 b5 b9.9995", false},
		{stamp(10), "", "a10 a12 a20 b15", false},
		{stamp(9.9995), "", "a10 a12 a20 b15 b9.9995", false},
		{stamp(8), stamp(15), "a10 a12 a8 b9.9995", false},
		{stamp(100), "", "", false},
		{stamp(8), stamp(15), "a10 a8 b9.9995", true}, // a12 is late, and kept aside
		{stamp(15), "", "a20 b15", true},              // a12 comes late, and does not belong to it
		{"numbers/0@1,numbers/1@1", "", "a10 a12 a20 a8 b15 b9.9995", false},
		{"numbers/0@1,numbers/1@1", "numbers/0@3,numbers/1@2", "a10 a8 b15", false},
	}
	for _, cs := range cases {
		s := newShadowed()
		f := replayFile(s)
		if cs.order {
			bound(5 * time.Second)(&f.Sinks[0])
		}
		var last pipeline.ReplayProgress
		r, err := pipeline.NewReplay(f, open(t, c), pipeline.ReplayOptions{
			Sink: "a", From: mustParse(t, cs.from), To: mustParse(t, cs.to), Into: "shadow", Epoch: 3,
			Progress: func(p pipeline.ReplayProgress) { last = p },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Errorf("from %s to %s: %v", cs.from, cs.to, err)
			continue
		}
		if got := sortedValues(s.shadow.all()); got != cs.want {
			t.Errorf("from %s to %s: got %s, want %s", cs.from, cs.to, got, cs.want)
		}
		if last.Done != last.Total || last.Delivered != int64(s.shadow.count()) || last.State != pipeline.StateDone || last.Late != map[bool]int64{true: 1}[cs.order && cs.from == stamp(8)] {
			t.Errorf("from %s to %s: progress at the end is %+v", cs.from, cs.to, last)
		}
		if s.live.count() != 0 || *s.into != "shadow" || s.env.Epoch != 3 {
			t.Errorf("the live target got %d, into %q, epoch %d", s.live.count(), *s.into, s.env.Epoch)
		}
		for _, d := range s.shadow.all() {
			if d.Version>>52 != 3 {
				t.Errorf("version %x is not of epoch 3", d.Version)
			}
		}
	}
}

// A worker that was down for an hour, or logs from before, append long after the times of
// what they append.
func TestReplayFindsWhatWasAppendedLate(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 2, tick("a0", 0, 0, 3600), tick("b5", 1, 5, 3601), tick("a10", 0, 10, 3602), tick("b15", 1, 15, 3603), tick("a20", 0, 20, 3604))
	for _, per := range []string{"stream", "partition"} {
		s := newShadowed()
		f := replayFile(s, bound(5*time.Second))
		f.Sinks[0].Order.Per = per
		r, err := pipeline.NewReplay(f, open(t, c), pipeline.ReplayOptions{Sink: "a", From: mustParse(t, stamp(5)), To: mustParse(t, stamp(20)), Into: "shadow"})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := sortedValues(s.shadow.all()); got != "a10 b15 b5" {
			t.Errorf("per %s: got %s", per, got)
		}
	}
}

func stamp(seconds float64) string {
	return time.UnixMicro(second(seconds)).UTC().Format(time.RFC3339Nano)
}

func sortedValues(rows []pipeline.Delivery) string {
	parts := strings.Fields(values(rows))
	for i := range parts {
		for j := i + 1; j < len(parts); j++ {
			if parts[j] < parts[i] {
				parts[i], parts[j] = parts[j], parts[i]
			}
		}
	}
	return strings.Join(parts, " ")
}

func TestReplayKeepsItsRules(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, tick("a", 0, 0, 0), tick("b", 0, 1, 1))
	refused := func(o pipeline.ReplayOptions, want string) {
		t.Helper()
		o.Sink = "a"
		s := newShadowed()
		r, err := pipeline.NewReplay(replayFile(s), open(t, c), o)
		if err == nil {
			err = r.Run(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error with %q", o, err, want)
		}
		if s.live.count()+s.shadow.count() > 0 {
			t.Errorf("%+v: something was written", o)
		}
	}
	refused(pipeline.ReplayOptions{To: mustParse(t, stamp(1))}, "give --into")
	refused(pipeline.ReplayOptions{Epoch: 1}, "give --into")
	refused(pipeline.ReplayOptions{Epoch: 2048, Into: "x"}, "at most 2047")
	refused(pipeline.ReplayOptions{From: mustParse(t, "numbers/1@0"), Into: "x"}, "nothing of numbers/0")
	refused(pipeline.ReplayOptions{From: mustParse(t, "numbers/0@0,other/0@0"), Into: "x"}, "does not read")
	refused(pipeline.ReplayOptions{From: mustParse(t, "numbers/0@9"), Into: "x"}, "behind the end")
	refused(pipeline.ReplayOptions{From: mustParse(t, stamp(1)), To: mustParse(t, stamp(0)), Into: "x"}, "end must be after the beginning")
	refused(pipeline.ReplayOptions{From: mustParse(t, "numbers/0@2"), To: mustParse(t, "numbers/0@1"), Into: "x"}, "ends at 1, before it begins at 2")
	if _, err := pipeline.NewReplay(replayFile(newShadowed()), open(t, c), pipeline.ReplayOptions{Sink: "z"}); err == nil || !strings.Contains(err.Error(), `no sink "z"`) {
		t.Errorf("got %v", err)
	}

	s := newShadowed()
	r, err := pipeline.NewReplay(replayFile(s), open(t, c), pipeline.ReplayOptions{Sink: "a", From: mustParse(t, stamp(1))})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil || values(s.live.all()) != "b" {
		t.Errorf("to the live target up to the present: got %s, %v, want b", values(s.live.all()), err)
	}
}

func TestReplayRefusesADestinationThatHoldsACursor(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, tick("a", 0, 0, 0))
	s := newShadowed()
	s.resume = true
	run := func() error {
		r, err := pipeline.NewReplay(replayFile(s), open(t, c), pipeline.ReplayOptions{Sink: "a", Into: "x"})
		if err != nil {
			return err
		}
		return r.Run(t.Context())
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	err := run()
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != "replay-into-used" || s.shadow.count() != 1 {
		t.Errorf("got %v and %d records, want replay-into-used and 1", err, s.shadow.count())
	}
}

func TestReplayMovesNoLiveCursor(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, tick("a", 0, 0, 0), tick("b", 0, 1, 1))
	s := newShadowed()
	f := replayFile(s)
	once(t, c, f)
	r, err := pipeline.NewReplay(f, open(t, c), pipeline.ReplayOptions{Sink: "a", Into: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	*s.into = ""
	fill(t, c, "numbers", 1, tick("c", 0, 2, 2))
	once(t, c, f)
	if got := values(s.live.all()); got != "a b c" {
		t.Errorf("the live target has %s, want a b c", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := pipeline.NewReplay(f, open(t, c), pipeline.ReplayOptions{Sink: "a", Into: "y"}); err != nil {
		t.Fatal(err)
	} else if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled replay returned %v", err)
	}
}
