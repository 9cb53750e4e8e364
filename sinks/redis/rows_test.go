package redis_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daybook-data/daybook/sinks/sinktest"
)

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestHashHoldsColumnsAsTheyStand(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s,
		sinktest.Put(1, `{"id":1,"old":"goes","price":1.0}`),
		sinktest.Put(2, `{"id":1,"big":18446744073709551615,"price":1.10,"exp":1e400,"ok":true,"none":null,"empty":"","text":"a\"b\\\u00fc\n","list":[1, {"x":null}],"doc":{"k": "v"}}`),
	)
	sinktest.Flush(t, s, 3)
	got := client.HGetAll(t.Context(), "order:1").Val()
	want := map[string]string{
		"id": "1", "big": "18446744073709551615", "price": "1.10", "exp": "1e400", "ok": "true", "empty": "",
		"text": "a\"b\\ü\n", "list": `[1, {"x":null}]`, "doc": `{"k": "v"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the hash of the row (-want +got):\n%s", diff)
	}
}

func TestStringHoldsTheRowByteForByte(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	config := newConfig(server.Addr)
	config.Type = "string"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	text := `{"id":7, "big":18446744073709551615,"price":1.10,"none":null}`
	sinktest.Write(t, s, sinktest.Put(1, text))
	sinktest.Flush(t, s, 2)
	if got := client.Get(t.Context(), "order:7").Val(); got != text {
		t.Errorf("redis holds %s, want %s", got, text)
	}
}

func TestTypeOfTheSinkMayChange(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 2))
	sinktest.Flush(t, s, 3)
	config := newConfig(server.Addr)
	config.Type = "string"
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(3, 1), gone(4, 2))
	sinktest.Flush(t, s, 5)
	if got := client.Get(t.Context(), "order:1").Val(); got != `{"id":1,"at":3}` {
		t.Errorf("redis holds %q", got)
	}
	s = sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(5, 1))
	sinktest.Flush(t, s, 6)
	wantOrders(t, client, map[int]int64{1: 5})
}

func TestOnlyTheColumnsAskedFor(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	config := newConfig(server.Addr)
	config.Columns = []string{"a", "c"}
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, sinktest.Put(1, `{"id":7,"a":1,"b":2,"c":3}`), sinktest.Put(2, `{"id":8,"b":2}`))
	sinktest.Flush(t, s, 3)
	if diff := cmp.Diff(map[string]string{"a": "1", "c": "3"}, client.HGetAll(t.Context(), "order:7").Val()); diff != "" {
		t.Errorf("the hash (-want +got):\n%s", diff)
	}
	if client.Exists(t.Context(), "order:8").Val() != 0 {
		t.Error("a row without any of the columns has a key")
	}
}

func TestRowOfThousandsOfColumns(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	var b strings.Builder
	b.WriteString(`{"id":1`)
	for i := range 9000 {
		fmt.Fprintf(&b, `,"column_%d":%d`, i, i)
	}
	b.WriteString("}")
	sinktest.Write(t, s, sinktest.Put(1, b.String()))
	sinktest.Flush(t, s, 2)
	if n := client.HLen(t.Context(), "order:1").Val(); n != 9001 {
		t.Errorf("the hash has %d fields, want 9001", n)
	}
}

func TestRowsAndTombstonesExpire(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	config := newConfig(server.Addr)
	config.TTL, config.TombstoneTTL = time.Minute, time.Hour
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 2), gone(3, 2))
	sinktest.Flush(t, s, 4)
	for key, want := range map[string]time.Duration{
		"order:1": time.Minute, "daybook:v={order:1}": time.Minute + time.Hour, "daybook:v={order:2}": time.Minute + time.Hour,
	} {
		if left := client.PTTL(t.Context(), key).Val(); left > want || left < want-10*time.Second {
			t.Errorf("%s expires in %s, want %s", key, left, want)
		}
	}

	s = sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(4, 1), gone(5, 3))
	sinktest.Flush(t, s, 6)
	for key, want := range map[string]time.Duration{"order:1": -1, "daybook:v={order:1}": -1, "daybook:v={order:3}": time.Hour} {
		left := client.PTTL(t.Context(), key).Val()
		if left != want && (want < 0 || left > want || left < want-10*time.Second) {
			t.Errorf("without ttl %s expires in %s, want %s", key, left, want)
		}
	}
}

// TestKeysWithBraces writes keys that look like each other's version keys and slots.
func TestKeysWithBraces(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	config := newConfig(server.Addr)
	config.Key = "{id}"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	ids := []string{"x", "{x}", "{{x}}", "a{}b", "a}b", "a{b", "{}", "}{", "v:x", "v={x}", "={x}", "user:{7}:name", "{7}"}
	for i, id := range ids {
		sinktest.Write(t, s, sinktest.Put(int64(i), fmt.Sprintf(`{"id":%q}`, id)))
	}
	sinktest.Flush(t, s, 100)
	for _, id := range ids {
		if got := client.HGet(t.Context(), id, "id").Val(); got != id {
			t.Errorf("key %q holds the row %q", id, got)
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != int64(2*len(ids)+1) {
		t.Errorf("%d keys for %d rows, their versions and the target", n, len(ids))
	}
	truncate := sinktest.Truncate(200)
	sinktest.Write(t, s, truncate)
	sinktest.Flush(t, s, 201)
	for _, id := range ids {
		if client.Exists(t.Context(), id).Val() != 0 {
			t.Errorf("key %q is left after the truncate", id)
		}
	}
	sinktest.Write(t, s, sinktest.Put(201, `{"id":"daybook:v={x}"}`))
	if err := s.Flush(t.Context(), sinktest.UpTo(202)); err == nil || !strings.Contains(err.Error(), "Daybook's own") {
		t.Errorf("a row with a key of Daybook's own: %v", err)
	}
}

func TestTruncateLeavesForeignKeysAlone(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	s := sinktest.Open(t, newConfig(server.Addr), sinktest.NewEnv(t))
	if err := client.Set(t.Context(), "order:by-hand", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for id := range 5000 {
		sinktest.Write(t, s, order(int64(id), id))
	}
	truncate := sinktest.Truncate(6000)
	sinktest.Write(t, s, truncate, order(6001, 1))
	sinktest.Flush(t, s, 6002)
	keys := client.Keys(t.Context(), "order:*").Val()
	if len(keys) != 2 || client.Exists(t.Context(), "order:by-hand", "order:1").Val() != 2 {
		t.Errorf("after a truncate and one row the keys are %v", keys)
	}
}

func TestTruncateAsTheSectionSays(t *testing.T) {
	t.Parallel()
	server, client := newServer(t)
	truncate := sinktest.Truncate(2)
	config := newConfig(server.Addr)
	config.Truncate = "stop"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), truncate)
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(3)), "truncate")
	config.Truncate = "ignore"
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, truncate)
	sinktest.Flush(t, s, 3)
	wantOrders(t, client, map[int]int64{1: 1})
}
