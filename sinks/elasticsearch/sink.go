package elasticsearch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/daybook-data/daybook/pipeline"
)

// Sink writes documents to Elasticsearch. It holds what was written to it until a Flush
// succeeds, in order; memory is bounded by what its caller writes between two Flushes and
// by one request.
type Sink struct {
	config  *Config
	env     pipeline.SinkEnv
	places  places
	client  *client
	indices *indices

	pending  []operation
	rejected []pipeline.Rejected // since the last Flush that got through
	issued   *pipeline.Issued
	limit    int64  // size of a request that the server took; 0 while it took all
	body     []byte // of a request that is over, to be used again

	applied, superseded, retried atomic.Int64
	lacking                      atomic.Pointer[string] // why the last Flush failed; nil if it did not
}

var (
	_ pipeline.Sink     = (*Sink)(nil)
	_ pipeline.Reporter = (*Sink)(nil)
)

// Write accepts deliveries. It does not talk to the server.
func (s *Sink) Write(_ context.Context, batch []pipeline.Delivery) error {
	for i := range batch {
		it := &item{Delivery: batch[i]}
		if it.Change() && s.places.index.Uses(pipeline.PlaceDate) {
			return &pipeline.StopError{
				Code: "index-by-date", Where: "index " + s.config.Index,
				Err: fmt.Errorf("a change of %s: with a date in its index a row would stand in as many indices as it has changes", it.Table),
				Fix: "use dates for streams of events only; take the date out, or read the changes with another sink",
			}
		}
		operations, err := s.plan(it)
		if err != nil {
			s.reject(it, err.Error())
			continue
		}
		s.pending = append(s.pending, operations...)
	}
	return nil
}

// reject keeps a delivery for the RejectedError of the Flush that gets through, once.
func (s *Sink) reject(it *item, reason string) {
	if it.refused {
		return
	}
	it.refused = true
	s.rejected = append(s.rejected, pipeline.Rejected{Delivery: it.Delivery, Reason: reason})
}

// Flush applies what was written. The checkpoint is not kept here: versions make it safe
// to apply all again.
func (s *Sink) Flush(ctx context.Context, _ pipeline.Checkpoint) error {
	if err := s.flush(ctx); err != nil {
		if !errors.As(err, new(*pipeline.StopError)) {
			err = fmt.Errorf("elasticsearch at %s: %w", strings.Join(s.config.URLs, ", "), err)
		}
		text := err.Error()
		s.lacking.Store(&text)
		return err
	}
	s.lacking.Store(nil)
	if len(s.rejected) > 0 {
		err := &pipeline.RejectedError{Rejected: s.rejected}
		s.rejected = nil
		return err
	}
	return nil
}

func (s *Sink) flush(ctx context.Context) error {
	if !varies(s.places.index) {
		// Also where nothing is written: the next run is to find it.
		if _, err := s.indices.prepare(ctx, s.config.Index, ""); err != nil {
			return err
		}
	}
	for len(s.pending) > 0 {
		if s.pending[0].kind == truncate {
			if err := s.truncate(ctx, s.pending[0].item); err != nil {
				return err
			}
			s.pending = s.pending[1:]
			continue
		}
		n := s.chunk(s.pending)
		left, err := s.apply(ctx, s.pending[:n])
		s.pending = s.pending[n:]
		if len(left) > 0 {
			s.pending = append(left, s.pending...)
		}
		if err != nil {
			return err
		}
	}
	s.pending = nil
	if s.config.Refresh == "flush" {
		if err := s.indices.refresh(ctx); err != nil {
			return err
		}
	}
	return s.indices.verify(ctx)
}

// chunk returns how many operations go into one request. A truncate stands alone: all
// before it must be done first, or it would miss them.
func (s *Sink) chunk(pending []operation) int {
	limit := s.config.MaxBatch
	if s.limit > 0 {
		limit = min(limit, s.limit)
	}
	bytes := int64(0)
	for i := range pending {
		bytes += int64(pending[i].size())
		if pending[i].kind == truncate || i > 0 && bytes > limit {
			return i
		}
	}
	return len(pending)
}

// Close lets go of the connections. What was not flushed is not written.
func (s *Sink) Close() error { return s.client.close() }

// Report says how the sink stands.
func (s *Sink) Report() pipeline.Report {
	r := pipeline.Report{
		Phase:    "live",
		Counters: map[string]int64{"applied": s.applied.Load(), "superseded": s.superseded.Load(), "retried": s.retried.Load()},
	}
	if why := s.lacking.Load(); why != nil {
		r.Phase, r.Detail = "waiting", *why
	}
	return r
}
