package pipeline_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// parking is a source that leaves a part out while missing says so.
type parking struct {
	script
	missing *atomic.Bool
}

func (p parking) OpenSource(pipeline.SourceEnv) (pipeline.Source, error) { return p, nil }

func (p parking) Run(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
	return p.run(ctx, from, out)
}

func (p parking) Describe(at pipeline.Position) string { return "number " + string(at) }

func (p parking) ParkedAt(at pipeline.Position) []pipeline.Parked {
	return []pipeline.Parked{{What: "shop.orders", Since: string(at), Code: "no-key"}}
}

func (p parking) Report() pipeline.Report {
	if !p.missing.Load() {
		return pipeline.Report{}
	}
	return pipeline.Report{Parked: []pipeline.Parked{{What: "shop.orders", Since: "log:4711", At: time.Now(), Code: "no-key", Why: "it has none", Fix: "add one"}}}
}

// A source that leaves something out runs on, and is neither running nor ready.
func TestParkedPartsShow(t *testing.T) {
	t.Parallel()
	p := parking{script{run: endless}, &atomic.Bool{}}
	p.missing.Store(true)
	f := sourceFile(script{}, func(e *pipeline.SourceEntry) { e.Config = p })
	j := open(t, cluster(t))
	if at, err := j.SourceCursor(t.Context(), f.Pipeline, &f.Sources[0]); err != nil || at.Position != "" || at.Parked != nil {
		t.Errorf("before it has run the journal holds %+v of the source, %v", at, err)
	}
	w := worker(t, f, j, pipeline.WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	eventually(t, "the source to be degraded", func() bool { return w.Status().Sources[0].State == pipeline.StateDegraded })
	before := w.Status().Sources[0]
	eventually(t, "records to go on", func() bool { return w.Status().Sources[0].Records > before.Records })
	s := w.Status()
	want := "1 parked, the first: [no-key] shop.orders: it has none (fix: add one)"
	if src := s.Sources[0]; s.Ready || src.Code != "no-key" || src.Error != want || src.ErrorAt.IsZero() {
		t.Errorf("ready %t, code %q, error %q at %s; want not ready, no-key, %q", s.Ready, src.Code, src.Error, src.ErrorAt, want)
	}
	eventually(t, "a position", func() bool { return w.Status().Sources[0].Position != "" })
	if src := w.Status().Sources[0]; src.PositionText != "number "+string(src.Position) {
		t.Errorf("the position %s is described as %q", src.Position, src.PositionText)
	}
	p.missing.Store(false)
	eventually(t, "the source to run", func() bool {
		s := w.Status()
		return s.Ready && s.Sources[0].State == pipeline.StateRunning && s.Sources[0].Error == ""
	})
	cancel()
	<-ended
	at, err := j.SourceCursor(t.Context(), f.Pipeline, &f.Sources[0])
	if err != nil || at.Position == "" || at.PositionText != "number "+string(at.Position) || len(at.Parked) != 1 || at.Parked[0].Since != string(at.Position) {
		t.Errorf("of the source that has ended the journal holds %+v, %v", at, err)
	}
}
