package redis_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
)

func TestEmptiedServerStopsTheSink(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := open(t, newConfig(server.Addr), newEnv(t))
	write(t, s, order(1, 1))
	flush(t, s, 2)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	write(t, s, order(2, 2))
	wantStop(t, s.Flush(t.Context(), upTo(3)), "target-lost")

	// After a restart the sink has a cursor, and the target is still missing.
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	env := newEnv(t)
	env.Cursor = upTo(2).Offsets
	restarted := open(t, newConfig(server.Addr), env)
	write(t, restarted, order(2, 2))
	wantStop(t, restarted.Flush(t.Context(), upTo(3)), "target-lost")
	if keys := client.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("the sink wrote %v to a server that had lost its target", keys)
	}

	// The fix: a replay from the start, which has no cursor yet; then the sink goes on.
	replay := open(t, newConfig(server.Addr), newEnv(t))
	write(t, replay, order(1, 1), order(2, 2))
	flush(t, replay, 3)
	again := open(t, newConfig(server.Addr), env)
	write(t, again, order(3, 3))
	flush(t, again, 4)
	wantOrders(t, client, map[int]int64{1: 1, 2: 2, 3: 3})
}

// TestOldCopyStopsTheSink loads a copy of the server's data from before its last
// confirmed changes, as a lagging replica or a restored backup would.
func TestOldCopyStopsTheSink(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t)
	s := open(t, newConfig(server.Addr), newEnv(t))
	write(t, s, order(1, 1))
	flush(t, s, 2)
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
	write(t, s, order(2, 2))
	flush(t, s, 3)

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
	env := newEnv(t)
	env.Cursor = upTo(3).Offsets
	stop := wantStop(t, open(t, newConfig(server.Addr), env).Flush(t.Context(), upTo(3)), "target-set-back")
	if !strings.Contains(stop.Fix, stream+"/0:2") {
		t.Errorf("the fix does not say from where to replay: %s", stop.Fix)
	}
	// The run that had it all finds out too, without a restart.
	write(t, s, order(3, 3))
	wantStop(t, s.Flush(t.Context(), upTo(4)), "target-set-back")
}

func TestVersionFromElsewhereStopsTheSink(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := open(t, newConfig(server.Addr), newEnv(t))
	write(t, s, order(1, 1))
	flush(t, s, 2)
	other := newEnv(t) // another journal, whose clock is ahead, under the same stream id
	ahead := order(2_000_000, 1)
	other.Highest = func(context.Context) (int64, error) { return stamp + 3_000_000, nil }
	s2 := open(t, newConfig(server.Addr), other)
	write(t, s2, ahead)
	flush(t, s2, 3)

	write(t, s, order(2, 1))
	wantStop(t, s.Flush(t.Context(), upTo(3)), "version-from-elsewhere")
	wantOrders(t, client, map[int]int64{1: 2_000_000})
}

func TestNewerVersionOfTheSameStreamIsFine(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	env := newEnv(t)
	asked := 0
	env.Highest = func(context.Context) (int64, error) { asked++; return stamp + 100, nil }
	s := open(t, newConfig(server.Addr), env)
	write(t, s, order(50, 1), order(51, 2), order(10, 1), order(11, 2))
	flush(t, s, 52)
	wantOrders(t, client, map[int]int64{1: 50, 2: 51})
	if asked != 1 {
		t.Errorf("the journal was asked %d times how far it is, want once", asked)
	}
}

func TestStreamAddedToTheSinkIsTaken(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t)
	s := open(t, newConfig(server.Addr), newEnv(t))
	flush(t, s, 2)
	env := newEnv(t)
	env.Streams = append(env.Streams, pipeline.StreamID{Name: "more", ID: "m"})
	flush(t, open(t, newConfig(server.Addr), env), 2)
	env.Streams = []pipeline.StreamID{{Name: "more", ID: "other"}}
	wantStop(t, open(t, newConfig(server.Addr), env).Flush(t.Context(), upTo(2)), "target-of-another")
	env.Streams = []pipeline.StreamID{{Name: "unrelated", ID: "u"}}
	wantStop(t, open(t, newConfig(server.Addr), env).Flush(t.Context(), upTo(2)), "target-of-another")
}
