package elasticsearch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// BenchmarkWrite puts rows of a table of nine columns, in batches of 2,000, into a real
// node, and into nothing: what that costs is the sink's own.
func BenchmarkWrite(b *testing.B) {
	b.Run("node", func(b *testing.B) {
		server := services.ElasticsearchForTest(b, services.Options{Variant: "long"})
		rows := benchmark(b, server.URL())
		n := &node{url: server.URL()}
		if got := n.count(b, "orders"); got != rows {
			b.Errorf("the index holds %d documents, want %d", got, rows)
		}
	})
	b.Run("nothing", func(b *testing.B) { benchmark(b, newNothing(b)) })
}

func benchmark(b *testing.B, url string) (rows int) {
	s := sinktest.Open(b, newConfig(url, "orders"), sinktest.NewEnv(b))
	batch := make([]pipeline.Delivery, 2000)
	for i := range batch {
		batch[i] = sinktest.Put(0, fmt.Sprintf(`{"id":%d,"customer_id":%d,"status":"paid","total":"129.90","currency":"EUR",`+
			`"created_at":"2026-09-01T12:00:00Z","updated_at":"2026-09-01T12:00:00Z","note":null,"lines":[{"sku":"A-1","n":2}]}`, i, i*7))
	}
	round := func() {
		for i := range batch {
			batch[i].Version++
			batch[i].Key = fmt.Appendf(nil, `{"id":%d}`, rows)
			rows++
		}
		sinktest.Write(b, s, batch...)
		sinktest.Flush(b, s, int64(rows))
	}
	for range 20 {
		round() // a node that has just started is ten times as slow
	}
	b.ReportAllocs()
	before, began := rows, cpuTime(b)
	for b.Loop() {
		round()
	}
	written := float64(rows - before)
	b.ReportMetric(written/b.Elapsed().Seconds(), "docs/s")
	b.ReportMetric(float64((cpuTime(b)-began).Nanoseconds())/written, "cpu-ns/doc")
	return rows
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// newNothing starts a server that reads bulk requests and says that all went well.
func newNothing(b *testing.B) string {
	mark := `{"orders":{"settings":{"index.uuid":"u"},"mappings":{"_meta":{"daybook":{"epoch":0,"name":"orders","streams":{"shop.changes":"id-of-the-stream"}}}}}}`
	result := `,{"index":{"status":201}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		if r.URL.Path != "/_bulk" {
			fmt.Fprint(w, mark)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			b.Error(err)
		}
		n := bytes.Count(body, []byte("\n")) / 2
		fmt.Fprintf(w, `{"errors":false,"items":[%s]}`, strings.Repeat(result, n)[1:])
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// TestBacklogIsWrittenInBoundedMemory is the sink's part of a long outage: what
// it holds is what was written since the last Flush, however long the destination fails.
func TestBacklogIsWrittenInBoundedMemory(t *testing.T) {
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index, `{"mappings":{"dynamic":false}}`)
	proxy := sinktest.NewProxy(t, strings.TrimPrefix(n.url, "http://"))
	s := sinktest.Open(t, newConfig("http://"+proxy.Addr, index), sinktest.NewEnv(t))
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
	for range 6 { // 2,400 rows of 18 KiB: 42 MiB
		for range 400 {
			d := sinktest.Put(offset, fmt.Sprintf(`{"id":%d,"at":%d,"text":%q}`, offset%100, offset, text))
			d.Key = fmt.Append(nil, offset%100)
			sinktest.Write(t, s, d)
			offset++
		}
		sinktest.Flush(t, s, offset)
		highest = max(highest, liveHeap())
	}
	// One request's body is kept for the next.
	if grown := int64(highest) - int64(before); grown > 24<<20 {
		t.Errorf("between two batches of 7 MiB the sink keeps %d MiB", grown>>20)
	}
	want := map[int]int64{}
	for o := offset - 100; o < offset; o++ {
		want[int(o%100)] = o
	}
	wantOrders(t, n, index, want)
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
