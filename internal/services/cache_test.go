package services

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// counted is a recipe that counts how often it is built.
func counted(builds *atomic.Int32) recipe {
	return recipe{name: "thing", inputs: "1", build: func(_ context.Context, dir string) error {
		builds.Add(1)
		if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "bin", "program"), []byte("program"), 0o755)
	}}
}

func mustInstall(t *testing.T, c cache, r recipe) string {
	t.Helper()
	dir, err := c.install(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "bin", "program")); err != nil || string(got) != "program" {
		t.Fatalf("the installed program is %q, %v", got, err)
	}
	return dir
}

func TestInstallIsBuiltOnceForAllWhoWait(t *testing.T) {
	c := cache{dir: t.TempDir()}
	var builds atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.install(t.Context(), counted(&builds)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestOtherInputsAreAnotherInstallation(t *testing.T) {
	c := cache{dir: t.TempDir()}
	var builds atomic.Int32
	r := counted(&builds)
	first := mustInstall(t, c, r)
	r.inputs = "2"
	if second := mustInstall(t, c, r); second == first || builds.Load() != 2 {
		t.Errorf("%s and %s after %d builds, want two directories", first, second, builds.Load())
	}
}

func TestDamagedInstallationIsBuiltAgain(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"file gone":     func(dir string) error { return os.Remove(filepath.Join(dir, "bin", "program")) },
		"file cut":      func(dir string) error { return os.Truncate(filepath.Join(dir, "bin", "program"), 3) },
		"manifest gone": func(dir string) error { return os.Remove(filepath.Join(dir, manifestName)) },
		"manifest cut":  func(dir string) error { return os.Truncate(filepath.Join(dir, manifestName), 5) },
		"manifest void": func(dir string) error { return os.Truncate(filepath.Join(dir, manifestName), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := cache{dir: t.TempDir()}
			var builds atomic.Int32
			dir := mustInstall(t, c, counted(&builds))
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			mustInstall(t, c, counted(&builds))
			mustInstall(t, c, counted(&builds))
			if n := builds.Load(); n != 2 {
				t.Errorf("built %d times, want once more after the damage", n)
			}
		})
	}
}

func TestFailedBuildIsNotUsed(t *testing.T) {
	c := cache{dir: t.TempDir()}
	var builds atomic.Int32
	broken := counted(&builds)
	whole := broken.build
	cause := errors.New("disk full")
	broken.build = func(ctx context.Context, dir string) error { return errors.Join(whole(ctx, dir), cause) }
	if _, err := c.install(t.Context(), broken); !errors.Is(err, cause) {
		t.Fatalf("got %v, want the build's error", err)
	}
	mustInstall(t, c, counted(&builds))
	if n := builds.Load(); n != 2 {
		t.Errorf("built %d times, want again after the failure", n)
	}
}

func TestHalfABuildOfAKilledProcessIsNotUsed(t *testing.T) {
	c := cache{dir: t.TempDir()}
	var builds atomic.Int32
	dir := mustInstall(t, c, counted(&builds))
	// What a killed builder leaves: its directory under the name for builds.
	if err := os.Rename(dir, dir+".part"); err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(dir+".part", "stray")
	if err := os.WriteFile(stray, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, c, counted(&builds))
	if _, err := os.Stat(filepath.Join(dir, "stray")); !os.IsNotExist(err) {
		t.Errorf("a file of the killed build is installed: %v", err)
	}
}

func TestWaitingForABuilderEndsWithTheContext(t *testing.T) {
	c := cache{dir: t.TempDir()}
	building, stop := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := c.install(t.Context(), recipe{name: "thing", inputs: "1", build: func(context.Context, string) error {
			close(building)
			<-stop
			return nil
		}})
		done <- err
	}()
	<-building
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var builds atomic.Int32
	if _, err := c.install(ctx, counted(&builds)); !errors.Is(err, context.Canceled) || builds.Load() != 0 {
		t.Errorf("got %v after %d builds, want context.Canceled and none", err, builds.Load())
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPortsAreLeasedOnce(t *testing.T) {
	c := cache{dir: t.TempDir()}
	leases := map[int]*portLease{}
	for range 100 {
		l, err := c.leasePort(0)
		if err != nil {
			t.Fatal(err)
		}
		if leases[l.port] != nil {
			t.Fatalf("port %d was leased twice", l.port)
		}
		leases[l.port] = l
	}
	for port, l := range leases {
		if again, err := c.leasePort(port); err == nil {
			t.Errorf("port %d was leased while leased", again.port)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := c.leasePort(port)
		if err != nil {
			t.Fatalf("port %d after its lease: %v", port, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
