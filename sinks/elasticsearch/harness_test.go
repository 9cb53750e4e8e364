package elasticsearch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// order returns the record at offset that puts an order; gone one that deletes it.
func order(offset int64, id int) pipeline.Delivery {
	d := sinktest.Put(offset, fmt.Sprintf(`{"id":%d,"at":%d}`, id, offset))
	d.Key = fmt.Appendf(nil, `{"id":%d}`, id)
	return d
}

func gone(offset int64, id int) pipeline.Delivery {
	d := sinktest.Delete(offset, fmt.Sprintf(`{"id":%d}`, id))
	d.Key = fmt.Appendf(nil, `{"id":%d}`, id)
	return d
}

// wantOrders fails the test unless the index holds exactly these orders: id -> offset.
func wantOrders(t *testing.T, n *node, index string, want map[int]int64) {
	t.Helper()
	docs := n.documents(t, index)
	if len(docs) != len(want) {
		t.Errorf("the index holds %d orders, want %d", len(docs), len(want))
	}
	for _, doc := range docs {
		o := decode[struct {
			ID int
			At int64
		}](t, doc.Source)
		if at, ok := want[o.ID]; !ok || at != o.At || doc.ID != fmt.Sprint(o.ID) {
			t.Errorf("document %s is order %d as of offset %d, want offset %d", doc.ID, o.ID, o.At, at)
		}
	}
}

// gate stands before a node and falsifies some answers. What it lets through is answered
// by the node itself.
type gate struct {
	node *node
	url  string

	mu    sync.Mutex                                                                                  // guards what follows
	bulk  func(w http.ResponseWriter, r *http.Request, pass func(http.ResponseWriter, *http.Request)) // nil: pass
	bulks int
}

func newGate(t *testing.T, n *node) *gate {
	target, err := url.Parse(n.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	g := &gate{node: n}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		bulk := g.bulk
		if r.URL.Path == "/_bulk" {
			g.bulks++
		}
		g.mu.Unlock()
		if bulk == nil || r.URL.Path != "/_bulk" {
			proxy.ServeHTTP(w, r)
			return
		}
		bulk(w, r, proxy.ServeHTTP)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// onBulk says how bulk requests are answered from now on; nil passes them.
func (g *gate) onBulk(f func(w http.ResponseWriter, r *http.Request, pass func(http.ResponseWriter, *http.Request))) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bulk = f
}

// status answers all bulk requests with a status and a body of Elasticsearch's form.
func (g *gate) status(code int, kind string) {
	g.onBulk(func(w http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter, *http.Request)) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"type":%q,"reason":"by the test"},"status":%d}`, kind, code)
	})
}

// items takes the operations of some ids out of bulk requests and answers them with a
// status; the others reach the node.
func (g *gate) items(t *testing.T, statuses map[string]int) {
	g.onBulk(func(w http.ResponseWriter, r *http.Request, pass func(http.ResponseWriter, *http.Request)) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		kept, made := splitBulk(t, body, statuses)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(kept)), int64(len(kept))
		recorder := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding") // the answer is to be read here
		pass(recorder, r)
		var answer struct {
			Errors bool              `json:"errors"`
			Items  []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Errorf("the node answered %s: %v", recorder.Body, err)
		}
		answer.Errors = true
		for i, item := range made {
			if item == nil {
				made[i], answer.Items = answer.Items[0], answer.Items[1:]
			}
		}
		answer.Items = made
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// splitBulk returns the operations that are to reach the node, and for each operation of
// the request the result that the test makes up, nil where the node is to give it.
func splitBulk(t *testing.T, body []byte, statuses map[string]int) (kept []byte, made []json.RawMessage) {
	lines := strings.SplitAfter(string(body), "\n")
	for i := 0; i < len(lines) && lines[i] != ""; i++ {
		action := decode[map[string]struct {
			ID string `json:"_id"`
		}](t, []byte(lines[i]))
		for kind, target := range action {
			text := lines[i]
			if kind == "index" {
				i++
				text += lines[i]
			}
			status, taken := statuses[target.ID]
			if !taken {
				kept = append(kept, text...)
				made = append(made, nil)
				continue
			}
			made = append(made, fmt.Appendf(nil, `{%q:{"status":%d,"error":{"type":"by_the_test","reason":"id %s"}}}`, kind, status, target.ID))
		}
	}
	return kept, made
}
