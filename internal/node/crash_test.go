package node_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/shop"
)

// The crash test's numbers: kills, and how many of them must fall while appends
// are not yet acknowledged.
const (
	wantKills        = 55
	wantUnackedKills = 40
)

// TestKillsLoseNothingAndDoubleNothing kills the worker at random moments under continuous
// writes to all three sources, then holds every sink against its source.
func TestKillsLoseNothingAndDoubleNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openShop(t, shop.Options{NeedSearch: true, Seed: 7})
	file, _, err := s.WritePipeline(shop.PipelineOptions{Dir: dir, MaxOutOfOrder: "20s", Roll: "15s", Partitions: "3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Database.Create(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	binary := shop.Binary{Path: binaryPath, Dir: dir}
	stopTraffic := startTraffic(t, s)

	rnd := rand.New(rand.NewPCG(7, 7))
	unacked := 0
	for kill := range wantKills {
		w, err := binary.Run(file)
		if err != nil {
			t.Fatal(err)
		}
		waitForKill(t, s, w, rnd, kill)
		if s.App.InFlight() > 0 {
			unacked++
		}
		w.Kill()
	}
	t.Logf("%d kills, %d of them with unacknowledged appends in flight", wantKills, unacked)
	if unacked < wantUnackedKills {
		t.Errorf("only %d of %d kills fell on unacknowledged appends, want %d", unacked, wantKills, wantUnackedKills)
	}

	w, err := binary.Run(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := stopTraffic(); err != nil {
		t.Fatalf("traffic: %v", w.Because(err))
	}
	compareAll(t, s, w, binary, file)
}

// waitForKill returns at the moment of the next kill: some fall into the start, most after
// the worker has taken events again.
func waitForKill(t *testing.T, s *shop.Shop, w *shop.Worker, rnd *rand.Rand, kill int) {
	t.Helper()
	if kill%6 != 5 {
		accepted := s.App.Accepted()
		err := shop.Until(t.Context(), time.Minute, func(context.Context) error {
			if s.App.Accepted() == accepted {
				return errors.New("no event is accepted")
			}
			return w.Running()
		})
		if err != nil {
			t.Fatalf("after %d kills: %v\n%s", kill, err, w.LogTail())
		}
	}
	time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond) // the random moment itself
}

// startTraffic writes to all three sources until the returned function is called, which
// waits for the last write and returns the first error.
func startTraffic(t *testing.T, s *shop.Shop) func() error {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	first := make(chan error, 1)
	loop := func(pause time.Duration, act func(context.Context) error) {
		group.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				// The act itself is not cut short: what was begun is counted.
				if err := act(t.Context()); err != nil {
					select {
					case first <- err:
					default:
					}
					return
				}
			}
		})
	}
	loop(8*time.Millisecond, s.Database.Change)
	loop(8*time.Millisecond, s.Site.Visit)
	for range 8 {
		loop(2*time.Millisecond, s.App.Post)
	}
	return func() error {
		cancel()
		group.Wait()
		select {
		case err := <-first:
			return err
		default:
			return nil
		}
	}
}

// compareAll waits until every sink equals its source.
func compareAll(t *testing.T, s *shop.Shop, w *shop.Worker, binary shop.Binary, file string) {
	t.Helper()
	ctx := t.Context()
	equal := func(what string, compare func(context.Context) (int, error)) {
		t.Helper()
		n := 0
		err := shop.Until(ctx, 2*time.Minute, func(ctx context.Context) (err error) {
			n, err = compare(ctx)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", what, w.Because(err))
		}
		t.Logf("%d %s", n, what)
	}
	for _, table := range []string{"orders", "customers"} {
		equal(table+" equal in MySQL and Elasticsearch", func(ctx context.Context) (int, error) { return s.CompareSearch(ctx, table) })
	}
	equal("orders equal in MySQL and Redis", s.CompareCache)
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if out, err := binary.Once(ctx, "run", file, "--once"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	late, err := binary.Late(ctx, file, "archive") // events wait for a worker as long as a loaded machine needs to start one
	if err != nil {
		t.Fatal(err)
	}
	lines, events, err := s.CompareFiles(filepath.Join(binary.Dir, "out"), late)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d log lines and %d events once each in the files, in event-time order", lines, events)
}
