package redis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/redis"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

var shared services.Pool

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func TestHashesConform(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Suite{New: func(t *testing.T) sinktest.Destination { return newPlace(t, "hash") }})
}

func TestStringsConform(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Suite{New: func(t *testing.T) sinktest.Destination { return newPlace(t, "string") }})
}

// place is a key prefix on a real server, reached through a line that can break.
type place struct {
	prefix string
	kind   string
	proxy  *sinktest.Proxy
	client *goredis.Client
}

func newPlace(t *testing.T, kind string) *place {
	addr := shared.Redis(t).Addr
	return &place{
		prefix: fmt.Sprintf("test-%d:", time.Now().UnixNano()),
		kind:   kind,
		proxy:  sinktest.NewProxy(t, addr),
		client: newClient(t, addr),
	}
}

func newClient(t testing.TB, addr string) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (p *place) config() *redis.Config {
	return &redis.Config{
		Addr: p.proxy.Addr, Key: p.prefix + "{id}", Type: p.kind,
		TombstoneTTL: time.Hour, Truncate: "delete", Timeout: 2 * time.Second,
	}
}

func (p *place) Config(*testing.T) pipeline.SinkConfig { return p.config() }

func (p *place) Break(*testing.T) func() {
	p.proxy.Cut()
	return p.proxy.Mend
}

// Refuse puts a list where the row would go.
func (p *place) Refuse(t *testing.T, row sinktest.Row) {
	if err := p.client.RPush(t.Context(), p.prefix+row.ID, "a list").Err(); err != nil {
		t.Fatal(err)
	}
}

func (p *place) Contents(t *testing.T) []sinktest.Row {
	var rows []sinktest.Row
	for _, key := range p.keys(t) {
		if row, ok := p.row(t, key); ok {
			if row.ID != strings.TrimPrefix(key, p.prefix) {
				t.Errorf("key %q holds the row of id %q", key, row.ID)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func (p *place) keys(t *testing.T) []string {
	keys, err := p.client.Keys(t.Context(), p.prefix+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (p *place) row(t *testing.T, key string) (row sinktest.Row, ok bool) {
	ctx := context.Background()
	switch kind := p.client.Type(ctx, key).Val(); kind {
	case "list": // put there by Refuse
		return row, false
	case "string":
		return sinktest.ParseRow(t, []byte(p.client.Get(ctx, key).Val())), true
	case "hash":
		text, err := json.Marshal(p.client.HGetAll(ctx, key).Val())
		if err != nil {
			t.Fatal(err)
		}
		return sinktest.ParseRow(t, text), true
	default:
		t.Fatalf("key %q holds a %s", key, kind)
		return row, false
	}
}
