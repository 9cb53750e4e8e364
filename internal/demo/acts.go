package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"
)

// prepare fills the database before Daybook has ever run.
func (s *stage) prepare(ctx context.Context) error {
	title("2,300 rows are in MySQL before Daybook starts; requests are in nginx's log")
	s.shop = &shop{db: s.db, web: s.nginx.URL(), collect: "http://" + s.collect + "/collect", rnd: rand.New(rand.NewPCG(1, 2))}
	if err := s.shop.createTables(ctx); err != nil {
		return err
	}
	for range 200 {
		if err := s.shop.visit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// live runs the pipeline under traffic, and kills it in the middle.
func (s *stage) live(ctx context.Context) error {
	title("Snapshot, then live: rows change, pages are viewed, events posted; kill -9 in the middle")
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.shop.trade(ctx, 300); err != nil {
		return s.because(err)
	}
	traffic := make(chan error, 1)
	go func() { traffic <- s.shop.trade(ctx, 300) }()
	time.Sleep(300 * time.Millisecond) // let the kill fall into the traffic
	say("$ kill -9 %d      # writes go on", s.worker.cmd.Process.Pid)
	s.worker.kill()
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := <-traffic; err != nil {
		return s.because(err)
	}
	say("%d statements in MySQL, %d requests at nginx, %d events posted", s.shop.statements, s.shop.requests, s.shop.events)
	return nil
}

// compare waits until the destinations hold what the sources hold, and counts.
func (s *stage) compare(ctx context.Context) error {
	title("What came out")
	if s.search != nil {
		for _, table := range []string{"orders", "customers"} {
			if err := until(ctx, time.Minute, func(ctx context.Context) error { return s.compareSearch(ctx, table) }); err != nil {
				return s.because(err)
			}
		}
	}
	if err := until(ctx, time.Minute, s.compareCache); err != nil {
		return s.because(err)
	}
	// Stop it and let the same file run as a batch: that closes the open files.
	if err := s.worker.stop(); err != nil {
		return s.because(err)
	}
	if err := s.once(ctx, "run", s.file, "--once"); err != nil {
		return err
	}
	return s.compareFiles(filepath.Join(s.dir, "out"))
}

// because adds the worker's own words where it has ended.
func (s *stage) because(err error) error {
	if ended := s.worker.running(); ended != nil {
		return fmt.Errorf("%w\n%w", err, ended)
	}
	return err
}

// replay delivers what came since a moment to a folder of its own, twice: by time,
// while the pipeline is stopped, and then all of it from the start.
func (s *stage) replay(ctx context.Context) error {
	title("Replay: the same journal, from a timestamp, into another folder")
	if err := s.start(ctx); err != nil {
		return err
	}
	since := time.Now().UTC().Truncate(time.Second).Add(2 * time.Second)
	select { // nginx logs whole seconds: the stretch begins on one
	case <-time.After(time.Until(since)):
	case <-ctx.Done():
		return ctx.Err()
	}
	before := s.shop.requests
	for range 150 {
		if err := s.shop.visit(ctx); err != nil {
			return err
		}
	}
	want := s.shop.requests - before
	if err := s.worker.stop(); err != nil {
		return s.because(err)
	}
	if err := s.once(ctx, "run", s.file, "--once"); err != nil {
		return err
	}
	into := filepath.Join(s.dir, "replayed")
	err := s.once(ctx, "replay", s.file, "--sink", "archive", "--from", since.Format(time.RFC3339), "--into", into)
	if err != nil {
		return err
	}
	files, err := readFiles(into)
	if err != nil {
		return err
	}
	got := len(files["web.access"])
	if got != want {
		return fmt.Errorf("the replay since %s delivered %d lines of web.access, want %d", since.Format(time.RFC3339), got, want)
	}
	say("%d requests since %s = %d lines replayed", want, since.Format(time.RFC3339), got)
	return nil
}
