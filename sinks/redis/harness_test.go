package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/redis"
)

const (
	stream = "shop.changes"
	stamp  = int64(1_790_000_000_000_000)
)

func newConfig(addr string) *redis.Config {
	return &redis.Config{
		Addr: addr, Key: "order:{id}", Type: "hash",
		TombstoneTTL: time.Hour, Truncate: "delete", Timeout: 2 * time.Second,
	}
}

func newEnv(t testing.TB) pipeline.SinkEnv {
	return pipeline.SinkEnv{
		Pipeline: "shop", Name: "cache",
		Streams: []pipeline.StreamID{{Name: stream, ID: "id-of-the-stream"}},
		Highest: func(context.Context) (int64, error) { return stamp + 1_000_000, nil },
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func open(t testing.TB, c *redis.Config, env pipeline.SinkEnv) pipeline.Sink {
	t.Helper()
	s, err := c.OpenSink(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// row returns the record at offset that puts a row, given as JSON.
func row(offset int64, after string) pipeline.Delivery {
	d := pipeline.Delivery{
		Record: pipeline.Record{Stream: stream, Offset: offset, Table: "shop.orders", Stamp: stamp + offset},
		Op:     pipeline.OpUpdate, After: pipeline.NewRow([]byte(after)),
	}
	d.Version = d.Record.Version(0)
	return d
}

func order(offset int64, id int) pipeline.Delivery {
	return row(offset, fmt.Sprintf(`{"id":%d,"at":%d}`, id, offset))
}

func gone(offset int64, id int) pipeline.Delivery {
	d := row(offset, "")
	d.Op, d.Before = pipeline.OpDelete, pipeline.NewRow(fmt.Appendf(nil, `{"id":%d}`, id))
	return d
}

func write(t testing.TB, s pipeline.Sink, batch ...pipeline.Delivery) {
	t.Helper()
	if err := s.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

func upTo(offset int64) pipeline.Checkpoint {
	return pipeline.Checkpoint{Offsets: map[pipeline.Partition]int64{{Stream: stream}: offset}}
}

func flush(t testing.TB, s pipeline.Sink, next int64) {
	t.Helper()
	if err := s.Flush(t.Context(), upTo(next)); err != nil {
		t.Fatal(err)
	}
}

// wantWaiting fails the test unless Flush fails for now, with all of the words given in
// its error, and the sink says so.
func wantWaiting(t *testing.T, s pipeline.Sink, next int64, words ...string) {
	t.Helper()
	err := s.Flush(t.Context(), upTo(next))
	if err == nil || errors.As(err, new(*pipeline.StopError)) || errors.As(err, new(*pipeline.RejectedError)) {
		t.Fatalf("Flush returned %v, want an error after which it is called again", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	if r := s.(pipeline.Reporter).Report(); r.Phase != "waiting" || r.Detail != err.Error() {
		t.Errorf("the sink reports %q %q after %v", r.Phase, r.Detail, err)
	}
}

func wantStop(t *testing.T, err error, code string) *pipeline.StopError {
	t.Helper()
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != code || stop.Fix == "" {
		t.Fatalf("Flush returned %v, want the StopError %s with a fix", err, code)
	}
	return stop
}

// wantOrders fails the test unless exactly these orders are there: id -> offset.
func wantOrders(t *testing.T, client *goredis.Client, want map[int]int64) {
	t.Helper()
	keys, err := client.Keys(context.Background(), "order:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != len(want) {
		t.Errorf("redis holds %d orders, want %d", len(keys), len(want))
	}
	for id, offset := range want {
		if at := client.HGet(context.Background(), fmt.Sprintf("order:%d", id), "at").Val(); at != fmt.Sprint(offset) {
			t.Errorf("order %d is as of offset %q, want %d", id, at, offset)
		}
	}
}

// newServer starts a Redis of the test's own.
func newServer(t *testing.T, args ...string) (*services.Redis, *goredis.Client) {
	t.Helper()
	r := services.RedisForTest(t, services.Options{Args: args})
	return r, newClient(t, r.Addr)
}
