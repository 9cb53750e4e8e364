package elasticsearch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

func jsonText(s string) (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

func TestIndexIsMadeWithOurMark(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	config := newConfig(n.url, index)
	config.IndexFile = filepath.Join(t.TempDir(), "index.json")
	body := `{"settings":{"index":{"number_of_replicas":0}},"mappings":{"_meta":{"owner":"search team"},"properties":{"at":{"type":"long"}}}}`
	if err := os.WriteFile(config.IndexFile, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	got := string(n.must(t, "GET", "/"+index+"?flat_settings=true", ""))
	for _, want := range []string{
		`"index.gc_deletes":"900000ms"`, `"index.number_of_replicas":"0"`, `"owner":"search team"`, `"at":{"type":"long"}`,
		`"pipeline":"shop"`, `"sink":"sink"`, `"epoch":0`, `"shop.changes":"id-of-the-stream"`, `"tables":{"shop.orders":""}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the index lacks %s: %s", want, got)
		}
	}
}

func TestIndexOfSomebodyElse(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index+"/_doc/1", `{"by":"hand"}`)
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(2)), "target-of-another")

	// Once it is empty it is taken over, and what others keep in it stays.
	n.must(t, "DELETE", "/"+index+"/_doc/1", "")
	n.must(t, "PUT", "/"+index+"/_mapping", `{"_meta":{"owner":"search team"}}`)
	s = sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(2, 2))
	sinktest.Flush(t, s, 3)
	got := string(n.must(t, "GET", "/"+index+"?flat_settings=true", ""))
	if !strings.Contains(got, `"search team"`) || !strings.Contains(got, `"index.gc_deletes":"900000ms"`) || !strings.Contains(got, `"daybook"`) {
		t.Errorf("the index was taken over as %s", got)
	}

	env := sinktest.NewEnv(t)
	env.Streams = []pipeline.StreamID{{Name: "unrelated", ID: "u"}}
	sinktest.WantStop(t, sinktest.Open(t, newConfig(n.url, index), env).Flush(t.Context(), sinktest.UpTo(2)), "target-of-another")
}

func TestAliasOfOneIndexIsWrittenThrough(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index+"-v1", `{"aliases":{"`+index+`":{}}}`)
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	wantOrders(t, n, index+"-v1", map[int]int64{1: 1})
	n.must(t, "PUT", "/"+index+"-v2", `{"aliases":{"`+index+`":{}}}`)
	s = sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(2)), "target-of-another")
}

func TestDataStreamIsRefused(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/_index_template/"+index, `{"index_patterns":["`+index+`"],"data_stream":{},"priority":500}`)
	n.must(t, "POST", "/"+index+"/_bulk", "{\"create\":{}}\n{\"@timestamp\":\"2026-09-01T00:00:00Z\"}\n")
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(2)), "target-of-another")
}

func TestDeletedIndexStopsTheSink(t *testing.T) {
	t.Parallel()
	for _, template := range []string{"%s", "%s-{table}"} {
		n, name := newIndex(t)
		config := newConfig(n.url, fmt.Sprintf(template, name))
		index := strings.ReplaceAll(config.Index, "{table}", "orders")
		s := sinktest.Open(t, config, sinktest.NewEnv(t))
		sinktest.Write(t, s, order(1, 1))
		sinktest.Flush(t, s, 2)

		// While it runs: Elasticsearch makes the index anew, without a word.
		n.must(t, "DELETE", "/"+index, "")
		sinktest.Write(t, s, order(2, 2))
		sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(3)), "target-lost")

		// While it does not run.
		n.must(t, "DELETE", "/"+index, "")
		env := sinktest.NewEnv(t)
		env.Cursor = sinktest.UpTo(2).Offsets
		s = sinktest.Open(t, config, env)
		sinktest.Write(t, s, order(2, 2))
		sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(3)), "target-lost")
		if status, _ := n.ask(t, "HEAD", "/"+index, ""); status != 404 {
			t.Error("the sink made the index that it had lost")
		}

		// The fix: a replay from the start, then the sink again.
		replay := sinktest.Open(t, config, sinktest.NewEnv(t))
		sinktest.Write(t, replay, order(1, 1), order(2, 2))
		sinktest.Flush(t, replay, 3)
		s = sinktest.Open(t, config, env)
		sinktest.Write(t, s, order(2, 2), order(3, 3))
		sinktest.Flush(t, s, 4)
		wantOrders(t, n, index, map[int]int64{1: 1, 2: 2, 3: 3})
	}
}

// TestIndexUnknownToTheRegistryIsEnteredAgain is what a crash between the making of an
// index and its entry in the registry leaves behind.
func TestIndexUnknownToTheRegistryIsEnteredAgain(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	config := newConfig(n.url, index)
	sinktest.Flush(t, sinktest.Open(t, config, sinktest.NewEnv(t)), 1)
	entries := func() []document {
		n.must(t, "POST", "/daybook-sinks/_refresh", "")
		type hits struct{ Hits struct{ Hits []document } }
		return decode[hits](t, n.must(t, "GET", "/daybook-sinks/_search?q=index:"+index, "")).Hits.Hits
	}
	found := entries()
	if len(found) != 1 {
		t.Fatalf("the registry has %d entries of the index, want 1", len(found))
	}
	n.must(t, "DELETE", "/daybook-sinks/_doc/"+found[0].ID, "")
	env := sinktest.NewEnv(t)
	env.Cursor = sinktest.UpTo(1).Offsets
	sinktest.Flush(t, sinktest.Open(t, config, env), 1)
	if found := entries(); len(found) != 1 {
		t.Errorf("after another run the registry has %d entries of the index, want 1", len(found))
	}
	if got := string(n.must(t, "GET", "/*", "")); strings.Contains(got, "daybook-sinks") {
		t.Error("the registry shows among all indices")
	}
}

func TestNewTableOfARunningSinkGetsItsIndex(t *testing.T) {
	t.Parallel()
	n, prefix := newIndex(t)
	env := sinktest.NewEnv(t)
	env.Cursor = sinktest.UpTo(100).Offsets
	s := sinktest.Open(t, newConfig(n.url, prefix+"-{table}"), env)
	d := order(101, 1)
	d.Table = "shop.new_table"
	sinktest.Write(t, s, d)
	sinktest.Flush(t, s, 102)
	wantOrders(t, n, prefix+"-new_table", map[int]int64{1: 101})
}

func TestVersionFromElsewhereStopsTheSink(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(1, 2))
	sinktest.Flush(t, s, 2)
	n.must(t, "PUT", fmt.Sprintf("/%s/_doc/1?version=%d&version_type=external", index, sinktest.Stamp+1_000_001), `{"id":1,"at":0}`)
	n.must(t, "PUT", fmt.Sprintf("/%s/_doc/2?version=%d&version_type=external", index, sinktest.Stamp+1_000_000), `{"id":2,"at":0}`)
	sinktest.Write(t, s, order(2, 2))
	sinktest.Flush(t, s, 3) // as high as the streams are: one of their own
	sinktest.Write(t, s, order(3, 1))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(4)), "version-from-elsewhere")

	// A deleted document's version counts too.
	n.must(t, "DELETE", fmt.Sprintf("/%s/_doc/1?version=%d&version_type=external", index, sinktest.Stamp+1_000_002), "")
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(4)), "version-from-elsewhere")

	env := sinktest.NewEnv(t)
	env.Highest = func(context.Context) (int64, error) { return 0, context.DeadlineExceeded }
	s = sinktest.Open(t, newConfig(n.url, index), env)
	sinktest.Write(t, s, order(3, 1))
	sinktest.WantWaiting(t, s, 4, "how far the streams are")
}

func TestTruncateNeedsAnIndexOfTheTable(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	other := order(2, 2)
	other.Table = "shop.others"
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), other, sinktest.Truncate(3))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(4)), "truncate")
	wantOrders(t, n, index, map[int]int64{1: 1, 2: 2})

	config := newConfig(n.url, index+"-{country}")
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, sinktest.Truncate(3))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(4)), "truncate")

	config = newConfig(n.url, index)
	config.Truncate = "ignore"
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, sinktest.Truncate(3), order(4, 4))
	sinktest.Flush(t, s, 5)
	wantOrders(t, n, index, map[int]int64{1: 1, 2: 2, 4: 4})
}

// TestTruncateOfManyDocuments goes through more documents than one page of the search.
func TestTruncateOfManyDocuments(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	config := newConfig(n.url, index)
	config.Routing = "{at}"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	for offset := range int64(3500) {
		sinktest.Write(t, s, order(offset, int(offset)))
	}
	sinktest.Write(t, s, sinktest.Truncate(4000), order(4001, 1), order(10, 10))
	sinktest.Flush(t, s, 4002)
	wantOrders(t, n, index, map[int]int64{1: 4001})
	if got := s.(pipeline.Reporter).Report().Counters["superseded"]; got != 1 {
		t.Errorf("%d records are superseded, want the one from before the truncate", got)
	}
}

func TestShadowIsDefinedByItsName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ index, target, want string }{
		{"orders", "orders-2", "orders-2"},
		{"shop-{table}", "next", "next-shop-{table}"},
		{"shop-{table}", "next-{table}", "next-{table}"},
	} {
		config := newConfig("http://es", c.index)
		if err := config.Into(c.target); err != nil || config.Index != c.want {
			t.Errorf("the shadow %q of %q is %q, %v; want %q", c.target, c.index, config.Index, err, c.want)
		}
	}
	for _, bad := range []string{"", "Bad Name", "-x", "{yyyy"} {
		if err := newConfig("http://es", "orders").Into(bad); err == nil {
			t.Errorf("the shadow %q is taken", bad)
		}
	}
}

func TestRefreshAtFlushShowsDocumentsToSearches(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index, `{"settings":{"index.refresh_interval":"-1"}}`)
	config := newConfig(n.url, index)
	config.Refresh = "flush"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	if got := string(n.must(t, "GET", "/"+index+"/_count", "")); !strings.HasPrefix(got, `{"count":1,`) {
		t.Errorf("a search right after Flush finds %s", got)
	}
}
