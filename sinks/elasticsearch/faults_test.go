package elasticsearch_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// TestKilledNodeLosesNothing kills the node with SIGKILL while a batch is on its way, and
// starts it again on the same data.
func TestKilledNodeLosesNothing(t *testing.T) {
	t.Parallel()
	server := services.ElasticsearchForTest(t, services.Options{})
	n := &node{url: server.URL()}
	s := sinktest.Open(t, newConfig(n.url, "orders"), sinktest.NewEnv(t))
	sinktest.Flush(t, s, 0)
	want := map[int]int64{}
	random := rand.New(rand.NewPCG(3, 4))
	offset := int64(0)
	for round := range 3 {
		for range 8000 {
			id := random.IntN(3000)
			if random.IntN(4) == 0 {
				sinktest.Write(t, s, gone(offset, id))
				delete(want, id)
			} else {
				sinktest.Write(t, s, order(offset, id))
				want[id] = offset
			}
			offset++
		}
		done := make(chan error, 1)
		go func() { done <- s.Flush(context.Background(), sinktest.UpTo(offset)) }()
		wait := time.NewTimer(time.Duration(20+60*round) * time.Millisecond)
		select {
		case err := <-done:
			done <- err
		case <-wait.C:
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Logf("killed: %v", err)
			sinktest.WantWaiting(t, s, offset, n.url)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		flushWhenItCan(t, s, offset)
		wantOrders(t, n, "orders", want)
	}
}

// flushWhenItCan does what the deliver loop does: it calls Flush until it gets through.
func flushWhenItCan(t *testing.T, s pipeline.Sink, next int64) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := s.Flush(t.Context(), sinktest.UpTo(next))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestHalfAnAnswerIsNone cuts the line inside the answer to a bulk request that the node
// has carried out, at many places.
func TestHalfAnAnswerIsNone(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	proxy := sinktest.NewProxy(t, strings.TrimPrefix(n.url, "http://"))
	s := sinktest.Open(t, newConfig("http://"+proxy.Addr, index), sinktest.NewEnv(t))
	want := map[int]int64{}
	offset := int64(0)
	for id := range 100 {
		sinktest.Write(t, s, order(offset, id))
		offset++
	}
	sinktest.Flush(t, s, offset)
	for cut := 1; cut < 1500; cut += 61 {
		for id := range 100 {
			if id%10 == 9 {
				sinktest.Write(t, s, gone(offset, id))
			} else {
				sinktest.Write(t, s, order(offset, id))
				want[id] = offset
			}
			offset++
		}
		proxy.CutReplies(cut)
		sinktest.WantWaiting(t, s, offset)
		sinktest.Flush(t, s, offset)
	}
	wantOrders(t, n, index, want)
}

func TestAnswerThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	g := newGate(t, n)
	s := sinktest.Open(t, newConfig(g.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 2), gone(3, 1))
	for body, word := range map[string]string{
		`<html>It works!</html>`: "reading the answer",
		``:                       "reading the answer",
		`{"errors":false,"items":[{"index":{"status":201}}`: "reading the answer",
		`{"errors":false}`: "0 results for 3 operations",
		`{"errors":false,"items":[{"index":{"status":201}},{"index":{"status":201}}]}`:                          "2 results for 3 operations",
		`{"errors":false,"items":[{"index":{"status":201}},{"index":{"status":201}},{"index":{"status":201}}]}`: "not one of the operation",
		`{"errors":false,"items":[{"index":{"status":201}},{"index":{}},{"delete":{"status":200}}]}`:            "not one of the operation",
		`{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":400}},{"delete":{"status":200}}]}`: "gives no reason",
	} {
		g.onBulk(func(w http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter, *http.Request)) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Elastic-Product", "Elasticsearch")
			fmt.Fprint(w, body)
		})
		sinktest.WantWaiting(t, s, 4, word)
		s = sinktest.Open(t, newConfig(g.url, index), sinktest.NewEnv(t))
		sinktest.Write(t, s, order(1, 1), order(2, 2), gone(3, 1))
	}
	g.onBulk(nil)
	sinktest.Flush(t, s, 4)
	wantOrders(t, n, index, map[int]int64{2: 2})
}

// TestTimeoutAfterTheNodeHasActed lets the node carry out a bulk request and holds its
// answer back.
func TestTimeoutAfterTheNodeHasActed(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	proxy := sinktest.NewProxy(t, strings.TrimPrefix(n.url, "http://"))
	config := newConfig("http://"+proxy.Addr, index)
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Flush(t, s, 0)
	config.Timeout = 500 * time.Millisecond
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 1), gone(3, 2))
	proxy.Stall()
	sinktest.WantWaiting(t, s, 4, "deadline exceeded")
	proxy.Mend()
	config.Timeout = 20 * time.Second
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 1), gone(3, 2))
	sinktest.Flush(t, s, 4)
	wantOrders(t, n, index, map[int]int64{1: 2})
}

func TestTooLargeRequestsAreSplitAndTooLargeDocumentsRejected(t *testing.T) {
	t.Parallel()
	server := services.ElasticsearchForTest(t, services.Options{Args: []string{"http.max_content_length=64kb"}})
	n := &node{url: server.URL()}
	s := sinktest.Open(t, newConfig(n.url, "orders"), sinktest.NewEnv(t))
	text := func(offset int64, size int) pipeline.Delivery {
		d := sinktest.Put(offset, fmt.Sprintf(`{"id":%d,"text":%q}`, offset, strings.Repeat("x", size)))
		d.Key = fmt.Append(nil, offset)
		return d
	}
	for offset := range int64(100) {
		size := 5 << 10
		if offset == 17 || offset == 70 {
			size = 100 << 10
		}
		sinktest.Write(t, s, text(offset, size))
	}
	reasons := sinktest.WantRejected(t, s, 100, 17, 70)
	if !strings.Contains(reasons[17], "http.max_content_length") {
		t.Errorf("the reason does not say which limit: %s", reasons[17])
	}
	if got := n.count(t, "orders"); got != 98 {
		t.Errorf("the index holds %d documents, want 98", got)
	}
}

// TestBlockedOrClosedIndexHoldsTheSink blocks an index in the ways that operators and full
// disks do: none of it is the fault of a record.
func TestBlockedOrClosedIndexHoldsTheSink(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1))
	sinktest.Flush(t, s, 2)
	sinktest.Write(t, s, order(2, 1), gone(3, 2))
	for _, block := range []string{"write", "read_only_allow_delete"} {
		n.must(t, "PUT", "/"+index+"/_settings", `{"index.blocks.`+block+`":true}`)
		sinktest.WantWaiting(t, s, 4, "cluster_block_exception")
		n.must(t, "PUT", "/"+index+"/_settings", `{"index.blocks.`+block+`":null}`)
	}
	n.must(t, "POST", "/"+index+"/_close", "")
	sinktest.WantWaiting(t, s, 4, "index_closed_exception")
	n.must(t, "POST", "/"+index+"/_open", "")
	flushWhenItCan(t, s, 4)
	wantOrders(t, n, index, map[int]int64{1: 2})
}

// TestServerUnderPressure fills the node's memory for requests, so that it answers 429 to
// whole requests.
func TestServerUnderPressure(t *testing.T) {
	t.Parallel()
	server := services.ElasticsearchForTest(t, services.Options{Args: []string{"indexing_pressure.memory.limit=1mb"}})
	n := &node{url: server.URL()}
	config := newConfig(n.url, "orders")
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	text := strings.Repeat("x", 10<<10)
	for offset := range int64(300) {
		d := sinktest.Put(offset, fmt.Sprintf(`{"id":%d,"text":%q}`, offset, text))
		d.Key = fmt.Append(nil, offset)
		sinktest.Write(t, s, d)
	}
	sinktest.WantWaiting(t, s, 300, "429")
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	config.MaxBatch = 256 << 10
	for offset := range int64(300) {
		d := sinktest.Put(offset, fmt.Sprintf(`{"id":%d,"text":%q}`, offset, text))
		d.Key = fmt.Append(nil, offset)
		sinktest.Write(t, s, d)
	}
	flushWhenItCan(t, s, 300)
	if got := n.count(t, "orders"); got != 300 {
		t.Errorf("the index holds %d documents, want 300", got)
	}
}
