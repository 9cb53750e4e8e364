package redis_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

func TestEmptiedServerStopsTheSink(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, order(2, 2))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(3)), "target-lost")

	// After a restart the sink has a cursor, and the target is still missing.
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	env := sinktest.NewEnv(t)
	env.Cursor = sinktest.UpTo(2).Offsets
	restarted := sinktest.Open(t, newConfig(server.Addr), env)
	sinktest.Write(t, restarted, order(2, 2))
	sinktest.WantStop(t, restarted.Flush(t.Context(), sinktest.UpTo(3)), "target-lost")
	if keys := client.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("the sink wrote %v to a server that had lost its target", keys)
	}

	// The fix: a replay from the start, which has no cursor yet; then the sink goes on.
	replay := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, replay, order(1, 1), order(2, 2))
	sinktest.Flush(t, replay, 3)
	again := sinktest.Open(t, newConfig(server.Addr), env)
	sinktest.Write(t, again, order(3, 3))
	sinktest.Flush(t, again, 4)
	wantOrders(t, client, map[int]int64{1: 1, 2: 2, 3: 3})
}

// TestOldCopyStopsTheSink loads a copy of the server's data from before its last
// confirmed changes, as a lagging replica or a restored backup would.
func TestOldCopyStopsTheSink(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	data := filepath.Join(server.Dir, "appendonlydir")
	if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, order(2, 2))
	sinktest.Flush(t, s, 3)

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := sinktest.NewEnv(t)
	env.Cursor = sinktest.UpTo(3).Offsets
	stop := sinktest.WantStop(t, sinktest.Open(t, newConfig(server.Addr), env).Flush(t.Context(), sinktest.UpTo(3)), "target-set-back")
	if !strings.Contains(stop.Fix, sinktest.Stream+"/0:2") {
		t.Errorf("the fix does not say from where to replay: %s", stop.Fix)
	}
	// The run that had it all finds out too, without a restart.
	sinktest.Write(t, s, order(3, 3))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(4)), "target-set-back")
}

func TestVersionFromElsewhereStopsTheSink(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	other := sinktest.NewEnv(t) // another journal, whose clock is ahead, under the same stream id
	ahead := order(2_000_000, 1)
	other.Highest = func(context.Context) (int64, error) { return sinktest.Stamp + 3_000_000, nil }
	s2 := sinktest.Open(t, newConfig(server.Addr), other)
	sinktest.Write(t, s2, ahead)
	sinktest.Flush(t, s2, 3)

	sinktest.Write(t, s, order(2, 1))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(3)), "version-from-elsewhere")
	wantOrders(t, client, map[int]int64{1: 2_000_000})
}

func TestNewerVersionOfTheSameStreamIsFine(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	env := sinktest.NewEnv(t)
	asked := 0
	env.Highest = func(context.Context) (int64, error) { asked++; return sinktest.Stamp + 100, nil }
	s := sinktest.Open(t, newConfig(server.Addr), env)
	sinktest.Write(t, s, order(50, 1), order(51, 2), order(10, 1), order(11, 2))
	sinktest.Flush(t, s, 52)
	wantOrders(t, client, map[int]int64{1: 50, 2: 51})
	if asked != 1 {
		t.Errorf("the journal was asked %d times how far it is, want once", asked)
	}
}

func TestStreamAddedToTheSinkIsTaken(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Flush(t, s, 2)
	env := sinktest.NewEnv(t)
	env.Streams = append(env.Streams, pipeline.StreamID{Name: "more", ID: "m"})
	sinktest.Flush(t, sinktest.Open(t, newConfig(server.Addr), env), 2)
	env.Streams = []pipeline.StreamID{{Name: "more", ID: "other"}}
	sinktest.WantStop(t, sinktest.Open(t, newConfig(server.Addr), env).Flush(t.Context(), sinktest.UpTo(2)), "target-of-another")
	env.Streams = []pipeline.StreamID{{Name: "unrelated", ID: "u"}}
	sinktest.WantStop(t, sinktest.Open(t, newConfig(server.Addr), env).Flush(t.Context(), sinktest.UpTo(2)), "target-of-another")
}
