package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/daybook-data/daybook/internal/shop"
)

const patience = time.Minute

// prepare fills the database before Daybook has ever run.
func (s *stage) prepare(ctx context.Context) error {
	title("2,300 rows are in MySQL and 200 lines in nginx's log before Daybook starts")
	if err := s.shop.Database.Create(ctx, 2000); err != nil {
		return err
	}
	return s.visit(ctx, 200)
}

func (s *stage) visit(ctx context.Context, n int) error {
	for range n {
		if err := s.shop.Site.Visit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// trade makes n rounds of changes, page views and events.
func (s *stage) trade(ctx context.Context, n int) error {
	acts := []func(context.Context) error{s.shop.Database.Change, s.shop.Database.Change, s.shop.Site.Visit, s.shop.App.Post}
	for range n {
		for _, act := range acts {
			if err := act(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// live runs the pipeline under traffic, and kills it in the middle.
func (s *stage) live(ctx context.Context) error {
	title("Snapshot, then live: rows change, pages are viewed, events posted; kill -9 in the middle")
	if err := s.start(); err != nil {
		return err
	}
	if err := s.trade(ctx, 200); err != nil {
		return s.worker.Because(err)
	}
	traffic := make(chan error, 1)
	before := s.shop.App.Posted()
	go func() { traffic <- s.trade(ctx, 400) }()
	err := shop.Until(ctx, patience, func(context.Context) error {
		if s.shop.App.Posted() < before+50 {
			return fmt.Errorf("the traffic does not flow")
		}
		return nil
	})
	if err != nil {
		return s.worker.Because(err)
	}
	say("$ kill -9 %d      # in the middle of it; the traffic goes on", s.worker.PID)
	s.worker.Kill()
	if err := s.start(); err != nil {
		return err
	}
	if err := <-traffic; err != nil {
		return s.worker.Because(err)
	}
	say("%d statements in MySQL, %d requests at nginx, %d events posted", s.shop.Database.Statements, s.shop.Site.Requests, s.shop.App.Posted())
	return nil
}

// compare waits until the destinations hold what the sources hold, and counts.
func (s *stage) compare(ctx context.Context) error {
	title("What came out")
	if s.shop.Search != nil {
		for _, table := range []string{"orders", "customers"} {
			n, err := s.count(ctx, func(ctx context.Context) (int, error) { return s.shop.CompareSearch(ctx, table) })
			if err != nil {
				return err
			}
			say("%5d rows in MySQL shop.%s = %d documents in Elasticsearch shop-%s, field by field", n, table, n, table)
		}
	}
	n, err := s.count(ctx, s.shop.CompareCache)
	if err != nil {
		return err
	}
	say("%5d orders that are no drafts = %d hashes in Redis, field by field", n, n)
	if err := s.batch(ctx); err != nil {
		return err
	}
	lines, events, err := s.shop.CompareFiles(filepath.Join(s.dir, "out"), nil)
	if err != nil {
		return err
	}
	say("%5d lines in nginx's log = %d lines in files", lines, lines)
	say("%5d events posted = %d lines in files, each id once, in event-time order (posted up to 1 s out of it)", events, events)
	return nil
}

// count waits until both sides are the same and returns how much they hold.
func (s *stage) count(ctx context.Context, compare func(context.Context) (int, error)) (n int, err error) {
	err = shop.Until(ctx, patience, func(ctx context.Context) error {
		n, err = compare(ctx)
		return err
	})
	return n, s.worker.Because(err)
}

// batch stops the worker and runs the same file as a batch job, which closes the files
// that are open.
func (s *stage) batch(ctx context.Context) error {
	if err := s.worker.Stop(); err != nil {
		return err
	}
	return s.once(ctx, "run", s.file, "--once")
}

// replay delivers what was logged since a moment to a folder of its own.
func (s *stage) replay(ctx context.Context) error {
	title("Replay: the same journal, from a timestamp, into another folder")
	// nginx logs whole seconds: the stretch begins on one that nothing was logged in.
	since := time.Now().UTC().Truncate(time.Second).Add(2 * time.Second)
	select {
	case <-time.After(time.Until(since)):
	case <-ctx.Done():
		return ctx.Err()
	}
	const visits = 150
	if err := s.visit(ctx, visits); err != nil {
		return err
	}
	if err := s.once(ctx, "run", s.file, "--once"); err != nil {
		return err
	}
	into := filepath.Join(s.dir, "replayed")
	err := s.once(ctx, "replay", s.file, "--sink", "archive", "--from", since.Format(time.RFC3339), "--into", into)
	if err != nil {
		return err
	}
	files, err := shop.ReadFiles(into)
	if err != nil {
		return err
	}
	if got := len(files["web.access"]); got != visits || len(files["app.events"]) != 0 {
		return fmt.Errorf("replayed since %s: %d lines of web.access and %d events, want %d and 0",
			since.Format(time.RFC3339), got, len(files["app.events"]), visits)
	}
	say("%5d requests since %s = %d lines replayed", visits, since.Format(time.RFC3339), visits)
	return nil
}
