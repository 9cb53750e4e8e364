package redis

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/pipeline"
)

// Sink writes rows to Redis. It holds what was written to it until a Flush succeeds, in
// order; memory is bounded by what its caller writes between two Flushes.
type Sink struct {
	config   *Config
	env      pipeline.SinkEnv
	template *pipeline.Template
	security *tls.Config // nil for a plain connection
	scripts  scripts
	target   *target

	client *redis.Client             // nil while there is no connection
	unused *atomic.Pointer[net.Conn] // the client's first connection, until it is used

	pending  []change
	rejected []pipeline.Rejected // since the last Flush that got through
	issued   *pipeline.Issued

	applied, superseded atomic.Int64
	lacking             atomic.Pointer[string] // why the last Flush failed; nil if it did not
}

var (
	_ pipeline.Sink     = (*Sink)(nil)
	_ pipeline.Reporter = (*Sink)(nil)
)

func open(c *Config, env pipeline.SinkEnv, template *pipeline.Template, security *tls.Config) *Sink {
	s := &Sink{config: c, env: env, template: template, security: security, scripts: newScripts()}
	s.issued = pipeline.NewIssued(env)
	s.target = newTarget(s.scripts, env, c.Key)
	return s
}

// Write accepts deliveries. It does not talk to the server.
func (s *Sink) Write(_ context.Context, batch []pipeline.Delivery) error {
	for i := range batch {
		it := &item{Delivery: batch[i]}
		changes, err := s.plan(it)
		if err != nil {
			s.reject(it, err.Error())
			continue
		}
		s.pending = append(s.pending, changes...)
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

// Flush applies what was written and leaves the checkpoint's mark.
func (s *Sink) Flush(ctx context.Context, c pipeline.Checkpoint) error {
	err := s.flush(ctx, c)
	if err != nil {
		text := err.Error()
		s.lacking.Store(&text)
		_ = s.disconnect() // whatever it was, a new connection can't be worse
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

func (s *Sink) flush(ctx context.Context, c pipeline.Checkpoint) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.claim(ctx); err != nil {
		return err
	}
	for len(s.pending) > 0 {
		if s.pending[0].kind == truncate {
			if err := s.truncate(ctx, s.pending[0].item); err != nil {
				return err
			}
			s.pending = s.pending[1:]
			continue
		}
		n := chunk(s.pending)
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
	if err := s.target.mark(ctx, c); err != nil {
		return s.failure("leaving the checkpoint's mark", err)
	}
	return nil
}

// chunk returns how many changes go to the server in one pipeline. A truncate stands
// alone: all before it must be done first, or it would miss them.
func chunk(pending []change) int {
	const maxChanges, maxBytes = 1000, 1 << 20
	bytes := 0
	for i := range pending {
		bytes += pending[i].size()
		if i > 0 && (i == maxChanges || bytes > maxBytes) || pending[i].kind == truncate {
			return i
		}
	}
	return len(pending)
}

// Close lets go of the connection. What was not flushed is not written.
func (s *Sink) Close() error { return s.disconnect() }

// Report says how the sink stands.
func (s *Sink) Report() pipeline.Report {
	r := pipeline.Report{
		Phase:    "live",
		Counters: map[string]int64{"applied": s.applied.Load(), "superseded": s.superseded.Load()},
	}
	if why := s.lacking.Load(); why != nil {
		r.Phase, r.Detail = "waiting", *why
	}
	return r
}
