// Package examples runs every example on real servers: the same file, with the
// addresses of the test's servers in place of the usual ones.
package examples

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/shop"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	path, err := shop.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := shop.Open(t.Context(), shop.Options{NeedSearch: true, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Database.Create(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(t *testing.T, s *shop.Shop, b shop.Binary){
		"cdc-to-search-and-cache": cdcToSearchAndCache,
		"ordered-files":           orderedFiles,
		"replay":                  replay,
	}
	dirs, err := filepath.Glob("*/pipeline.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no example found: %v", err)
	}
	for _, file := range dirs {
		name := filepath.Dir(file)
		check := checks[name]
		if check == nil {
			t.Errorf("example %s has no test", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := shop.Binary{Path: path, Dir: t.TempDir()}
			place(t, s, file, b.Dir)
			if out, err := b.Once(t.Context(), "validate", "pipeline.yaml"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			check(t, s, b)
		})
	}
}

// place writes the example's file into dir with the addresses of the shop.
func place(t *testing.T, s *shop.Shop, file, dir string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	usual := strings.NewReplacer("127.0.0.1:3306", s.MySQL.Addr, "127.0.0.1:9200", s.Search.Addr, "127.0.0.1:6379", s.Redis.Addr,
		"/var/log/nginx/access.log", s.Nginx.AccessLog(), "127.0.0.1:8088", s.Collect)
	if err := os.WriteFile(filepath.Join(dir, "pipeline.yaml"), []byte(usual.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// repeat calls act n times.
func repeat(t *testing.T, n int, act func(context.Context) error) {
	t.Helper()
	for range n {
		if err := act(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// run starts the pipeline; the test's end kills it.
func run(t *testing.T, b shop.Binary) *shop.Worker {
	t.Helper()
	w, err := b.Run("pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	return w
}

// eventually waits for check.
func eventually(t *testing.T, w *shop.Worker, check func(context.Context) error) {
	t.Helper()
	if err := shop.Until(t.Context(), time.Minute, check); err != nil {
		t.Fatalf("%v\n%s", w.Because(err), w.LogTail())
	}
}

func cdcToSearchAndCache(t *testing.T, s *shop.Shop, b shop.Binary) {
	w := run(t, b)
	repeat(t, 200, s.Database.Change)
	eventually(t, w, func(ctx context.Context) error {
		_, orders := s.CompareSearch(ctx, "orders")
		_, customers := s.CompareSearch(ctx, "customers")
		_, cached := s.CompareCache(ctx)
		return errors.Join(orders, customers, cached)
	})
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	// The same file as a batch job.
	repeat(t, 50, s.Database.Change)
	if _, err := b.Once(t.Context(), "run", "pipeline.yaml", "--once"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareSearch(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
	if _, err := s.CompareCache(t.Context()); err != nil {
		t.Error(err)
	}
}

func orderedFiles(t *testing.T, s *shop.Shop, b shop.Binary) {
	repeat(t, 40, s.Site.Visit)
	w := run(t, b)
	for range 20 {
		repeat(t, 1, s.App.Post)
		repeat(t, 1, s.Site.Visit)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Once(t.Context(), "run", "pipeline.yaml", "--once"); err != nil {
		t.Fatal(err)
	}
	lines := 0
	files, err := shop.ReadFiles(filepath.Join(b.Dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		lines += len(f)
	}
	if lines != 60+20 {
		t.Errorf("%d lines in files, want %d requests and %d events", lines, 60, 20)
	}
}

func replay(t *testing.T, s *shop.Shop, b shop.Binary) {
	w := run(t, b)
	eventually(t, w, func(ctx context.Context) error {
		_, err := s.CompareIndex(ctx, "orders", "rebuild-orders")
		return err
	})
	// Beside the running pipeline.
	out, err := b.Once(t.Context(), "replay", "pipeline.yaml", "--sink", "search", "--from", "start", "--into", "shop-rebuilt-{table}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareIndex(t.Context(), "orders", "shop-rebuilt-orders"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// A stretch of the past into the live index is refused.
	past := time.Now().UTC().Format(time.RFC3339)
	out, err = b.Once(t.Context(), "replay", "pipeline.yaml", "--sink", "search", "--from", "start", "--to", past, "--into", "live")
	if err == nil {
		t.Errorf("a stretch of the past went into the live index:\n%s", out)
	}
}
