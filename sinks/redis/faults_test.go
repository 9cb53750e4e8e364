package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	want := map[int]int64{}
	random := rand.New(rand.NewPCG(1, 2))
	offset := int64(0)
	for range 4 {
		for range 3000 {
			id := random.IntN(500)
			if random.IntN(4) == 0 {
				sinktest.Write(t, s, gone(offset, id))
				delete(want, id)
			} else {
				sinktest.Write(t, s, order(offset, id))
				want[id] = offset
			}
			offset++
		}
		// Killed while the batch is on its way.
		done := make(chan error, 1)
		go func() { done <- s.Flush(context.Background(), sinktest.UpTo(offset)) }()
		waitForWrites(t, server.Addr)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			sinktest.WantWaiting(t, s, offset, server.Addr)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		sinktest.Flush(t, s, offset)
		wantOrders(t, client, want)
	}
}

// waitForWrites returns once the server has executed some of our scripts, or after a
// while: the batch may have been quicker.
func waitForWrites(t *testing.T, addr string) {
	client := newClient(t, addr)
	deadline := time.Now().Add(200 * time.Millisecond)
	for time.Now().Before(deadline) {
		if strings.Contains(client.Info(t.Context(), "commandstats").Val(), "cmdstat_evalsha") {
			return
		}
	}
}

// TestHalfAnAnswerIsNone cuts the line inside the replies of one flush, at many places.
func TestHalfAnAnswerIsNone(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	proxy := sinktest.NewProxy(t, server.Addr)
	s := sinktest.Open(t, newConfig(proxy.Addr), sinktest.NewEnv(t))
	sinktest.Flush(t, s, 0)
	want := map[int]int64{}
	offset := int64(0)
	for cut := 1; cut < 400; cut += 13 {
		for id := range 100 {
			sinktest.Write(t, s, order(offset, id))
			want[id] = offset
			offset++
		}
		proxy.CutReplies(cut)
		sinktest.WantWaiting(t, s, offset)
		sinktest.Flush(t, s, offset)
		wantOrders(t, client, want)
	}
}

func TestServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	config := newConfig(server.Addr)
	config.Timeout = 100 * time.Millisecond
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Flush(t, s, 0)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, order(1, 1), order(2, 2))
	sinktest.WantWaiting(t, s, 3, "timeout")
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	sinktest.Flush(t, s, 3)
	wantOrders(t, client, map[int]int64{1: 1, 2: 2})
}

func TestFullMemoryHoldsPutsAndLetsDeletesPass(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 2))
	sinktest.Flush(t, s, 3)
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, gone(3, 1))
	sinktest.Flush(t, s, 4)
	wantOrders(t, client, map[int]int64{2: 2})
	sinktest.Write(t, s, order(4, 2), order(5, 3), gone(6, 3))
	sinktest.WantWaiting(t, s, 7, "OOM", "maxmemory")
	wantOrders(t, client, map[int]int64{2: 2}) // a refused put leaves the old row whole
	if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	sinktest.Flush(t, s, 7)
	wantOrders(t, client, map[int]int64{2: 4})
}

func TestReplicaHoldsTheSinkUntilItIsPrimary(t *testing.T) {
	t.Parallel()
	primary, _ := newServer(t)
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	host, port, _ := strings.Cut(primary.Addr, ":")
	if err := client.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, order(2, 1))
	sinktest.WantWaiting(t, s, 3, "READONLY", "replica")
	if err := client.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	// It has copied an empty primary in the meantime, or not: either way it is not passed
	// over in silence.
	err := s.Flush(t.Context(), sinktest.UpTo(3))
	if client.Exists(t.Context(), "daybook:target:order:{id}").Val() == 0 {
		sinktest.WantStop(t, err, "target-lost")
	} else if err != nil {
		t.Fatal(err)
	}
}

func TestLostPrimaryHoldsTheSink(t *testing.T) {
	t.Parallel()
	server, client := newServer(t, "--replica-serve-stale-data", "no")
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	if err := client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	sinktest.Write(t, s, order(2, 1))
	sinktest.WantWaiting(t, s, 3, "MASTERDOWN")
	if err := client.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	sinktest.Flush(t, s, 3)
	wantOrders(t, client, map[int]int64{1: 2})
}

func TestForgottenScriptIsSentAgain(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	want := map[int]int64{}
	for offset := range int64(3) {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		sinktest.Write(t, s, order(offset, int(offset)))
		want[int(offset)] = offset
		sinktest.Flush(t, s, offset+1)
	}
	wantOrders(t, client, want)
}

func TestWrongPasswordHoldsTheSinkAndIsNotShown(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t, "--requirepass", "correct horse")
	config := newConfig(server.Addr)
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.WantWaiting(t, s, 2, "NOAUTH", "password")

	config.Password = configs.NewSecret("battery staple")
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.WantWaiting(t, s, 2, "WRONGPASS", "password")
	if err := s.Flush(t.Context(), sinktest.UpTo(2)); strings.Contains(err.Error(), "staple") {
		t.Errorf("the error shows the password: %v", err)
	}

	config.Password = configs.NewSecret("correct horse")
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
}

func TestClusterIsRefused(t *testing.T) {
	t.Parallel()
	server, client, _ := newClusterNode(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(2)), "redis-cluster")

	// A user who may not ask for INFO meets MOVED.
	if err := client.Do(t.Context(), "ACL", "SETUSER", "narrow", "on", ">pass", "~*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	moveAllSlots(t, server.Addr)
	config := newConfig(server.Addr)
	config.User, config.Password = "narrow", configs.NewSecret("pass")
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(2)), "redis-cluster")
}

// newClusterNode starts a node of Redis Cluster and returns the port of its bus, which
// would otherwise be 10,000 above its own: among those that the kernel gives away.
func newClusterNode(t *testing.T) (server *services.Redis, client *goredis.Client, bus string) {
	t.Helper()
	_, bus, _ = strings.Cut(services.AddressForTest(t), ":")
	server, client = newServer(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	return server, client, bus
}

// moveAllSlots gives all slots to a second node of the cluster.
func moveAllSlots(t *testing.T, addr string) {
	other, client, bus := newClusterNode(t)
	if err := client.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(other.Addr, ":")
	first := newClient(t, addr)
	if err := first.Do(t.Context(), "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := first.Get(t.Context(), "order:1").Err()
		if err != nil && strings.HasPrefix(err.Error(), "MOVED") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the first node does not send us to the second: %v", err)
		}
	}
}

// TestBacklogIsWrittenInBoundedMemory is the sink's part of a long outage: what
// it holds is what was written since the last Flush, however long the destination fails.
func TestBacklogIsWrittenInBoundedMemory(t *testing.T) {
	server, client := newServer(t)
	proxy := sinktest.NewProxy(t, server.Addr)
	s := sinktest.Open(t, newConfig(proxy.Addr), sinktest.NewEnv(t))
	text := strings.Repeat("x", 18<<10)
	proxy.Cut()
	sinktest.Write(t, s, order(0, 0))
	for range 200 {
		if err := s.Flush(t.Context(), sinktest.UpTo(1)); err == nil || errors.As(err, new(*pipeline.StopError)) {
			t.Fatal(err)
		}
	}
	proxy.Mend()
	sinktest.Flush(t, s, 1)
	before := liveHeap()
	var highest uint64
	offset := int64(1)
	for range 40 { // 16,000 rows of 18 KiB: 280 MiB
		for range 400 {
			sinktest.Write(t, s, sinktest.Put(offset, fmt.Sprintf(`{"id":%d,"at":%d,"text":%q}`, offset%100, offset, text)))
			offset++
		}
		sinktest.Flush(t, s, offset)
		highest = max(highest, liveHeap())
	}
	if grown := int64(highest) - int64(before); grown > 16<<20 {
		t.Errorf("between two batches of 7 MiB the sink keeps %d MiB", grown>>20)
	}
	want := map[int]int64{}
	for o := offset - 100; o < offset; o++ {
		want[int(o%100)] = o
	}
	wantOrders(t, client, want)
}
