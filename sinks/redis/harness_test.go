package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/redis"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

func newConfig(addr string) *redis.Config {
	return &redis.Config{
		Addr: addr, Key: "order:{id}", Type: "hash",
		TombstoneTTL: time.Hour, Truncate: "delete", Timeout: 2 * time.Second,
	}
}

// order returns the record at offset that puts an order; gone one that deletes it.
func order(offset int64, id int) pipeline.Delivery {
	return sinktest.Put(offset, fmt.Sprintf(`{"id":%d,"at":%d}`, id, offset))
}

func gone(offset int64, id int) pipeline.Delivery {
	return sinktest.Delete(offset, fmt.Sprintf(`{"id":%d}`, id))
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
