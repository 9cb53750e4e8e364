package services_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/internal/services"
)

func TestRedisKeepsDataThroughCrash(t *testing.T) {
	a := services.RedisForTest(t, services.Options{})
	b := services.RedisForTest(t, services.Options{})
	lifecycle{
		a: a.Server, b: b.Server, close: a.Close,
		write: func(t *testing.T, addr string) {
			if err := redisClient(t, addr).Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
		},
		count: func(t *testing.T, addr string) int {
			n, err := redisClient(t, addr).DBSize(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		},
	}.test(t)
}

func TestPausedServerAnswersNothingUntilResumed(t *testing.T) {
	r := services.RedisForTest(t, services.Options{})
	client := redisClient(t, r.Addr)
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var timeout net.Error
	if err := client.Ping(ctx).Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a paused server answers with %v, want no answer in time", err)
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after Resume: %v", err)
	}
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(); err != nil {
		t.Errorf("stopping a paused server: %v", err)
	}
}

func TestDataInCallersDirectoryOutlivesTheServer(t *testing.T) {
	dir := t.TempDir()
	first, err := services.StartRedis(t.Context(), services.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := redisClient(t, first.Addr).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := services.RedisForTest(t, services.Options{Dir: dir})
	got, err := redisClient(t, second.Addr).Get(t.Context(), "k").Result()
	if err != nil || got != "v" {
		t.Errorf("the next server on the directory has %q, %v; want v", got, err)
	}
}

func TestStartSaysWhyAServerEnded(t *testing.T) {
	_, err := services.StartRedis(t.Context(), services.Options{Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want an error with the server's own words", err)
	}
}

func TestTakenPortIsRefused(t *testing.T) {
	r := services.RedisForTest(t, services.Options{})
	_, err := services.StartRedis(t.Context(), services.Options{Port: port(t, r.Addr)})
	if err == nil {
		t.Fatalf("two servers on %s", r.Addr)
	}
}

func TestRedisCommandTalksToTheServer(t *testing.T) {
	r := services.RedisForTest(t, services.Options{})
	cmd, err := r.Command(t.Context(), "PING")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "PONG\n" {
		t.Errorf("redis-cli PING: %q, %v; want PONG", out, err)
	}
}

func redisClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
