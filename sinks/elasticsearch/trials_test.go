package elasticsearch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// newIndex returns the shared node and the name of an index of the test's own.
func newIndex(t *testing.T) (*node, string) {
	return &node{url: shared.Elasticsearch(t).URL()}, uniqueName()
}

// An unsigned BIGINT does not fit a long; then it is updated to one that does.
func TestT44TooBigANumberIsRejectedAndTheNextUpdateLands(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index, `{"mappings":{"properties":{"n":{"type":"long"}}}}`)
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	record := func(offset int64, n string) pipeline.Delivery {
		d := sinktest.Put(offset, `{"id":1,"n":`+n+`}`)
		d.Key = []byte("1")
		return d
	}
	sinktest.Write(t, s, record(1, "18446744073709551615"), order(2, 2))
	reasons := sinktest.WantRejected(t, s, 3, 1)
	for _, word := range []string{index, "document_parsing_exception", "[n]", "18446744073709551615"} {
		if !strings.Contains(reasons[1], word) {
			t.Errorf("the reason does not say %q: %s", word, reasons[1])
		}
	}
	sinktest.Write(t, s, record(3, "5"))
	sinktest.Flush(t, s, 4)
	// Both in one batch.
	sinktest.Write(t, s, record(4, "18446744073709551615"), record(5, "6"), order(6, 3))
	sinktest.WantRejected(t, s, 7, 4)
	if got := string(n.must(t, "GET", "/"+index+"/_source/1", "")); got != `{"id":1,"n":6}` {
		t.Errorf("the document is %s", got)
	}
	if got := n.count(t, index); got != 3 {
		t.Errorf("the index holds %d documents, want 3", got)
	}
}

// The id is made of two columns, one of which changes.
func TestT46ChangedPartOfAnIDRemovesTheOldDocument(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	config := newConfig(n.url, index)
	config.ID = "{a}-{b}"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s,
		sinktest.Put(1, `{"a":1,"b":"x"}`), sinktest.Put(2, `{"a":2,"b":"x"}`),
		sinktest.Delete(3, `{"a":1,"b":"x"}`),
		sinktest.Change(4, pipeline.OpUpdate, `{"a":2,"b":"x"}`, `{"a":2,"b":"y"}`))
	sinktest.Flush(t, s, 5)
	docs := n.documents(t, index)
	if len(docs) != 1 || docs[0].ID != "2-y" {
		t.Errorf("the documents are %v, want 2-y alone", docs)
	}
}

func TestChangedIndexOrRoutingRemovesTheOldDocument(t *testing.T) {
	t.Parallel()
	n, prefix := newIndex(t)
	config := newConfig(n.url, prefix+"-{country}")
	config.ID, config.Routing = "{id}", "{shop}"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	first, moved, rerouted := `{"id":1,"country":"de","shop":"a"}`, `{"id":1,"country":"FR","shop":"a"}`, `{"id":1,"country":"FR","shop":"b"}`
	sinktest.Write(t, s, sinktest.Put(1, first), sinktest.Change(2, pipeline.OpUpdate, first, moved), sinktest.Change(3, pipeline.OpUpdate, moved, rerouted))
	sinktest.Flush(t, s, 4)
	docs := n.documents(t, prefix+"-*")
	if len(docs) != 1 || docs[0].Index != prefix+"-fr" || docs[0].Routing != "b" || string(docs[0].Source) != rerouted {
		t.Errorf("the documents are %+v", docs)
	}
	sinktest.Write(t, s, sinktest.Delete(4, rerouted))
	sinktest.Flush(t, s, 5)
	if left := n.count(t, prefix+"-*"); left != 0 {
		t.Errorf("%d documents are left after the delete", left)
	}
}

// A bulk answered with 200 whose items have every status there is.
func TestT47EachItemIsJudgedByItself(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index, `{"mappings":{"properties":{"n":{"type":"integer"}}}}`)
	g := newGate(t, n)
	s := sinktest.Open(t, newConfig(g.url, index), sinktest.NewEnv(t))
	record := func(offset int64, id string, n string) pipeline.Delivery {
		d := sinktest.Put(offset, fmt.Sprintf(`{"id":%q,"n":%s}`, id, n))
		d.Key = []byte(id)
		return d
	}
	sinktest.Write(t, s, record(50, "conflict", "50"))
	sinktest.Flush(t, s, 51)

	g.items(t, map[string]int{"busy": 429, "down": 503, "bad gateway": 502})
	sinktest.Write(t, s,
		record(1, "fine", "1"), record(2, "busy", "2"), record(3, "down", "3"), record(4, "mapping", `"no number"`),
		record(5, "conflict", "5"), record(6, "bad gateway", "6"), record(7, "busy", "7"), record(8, "fine", "8"))
	sinktest.WantWaiting(t, s, 9, "429", "busy")
	sinktest.WantWaiting(t, s, 9)
	g.items(t, nil)
	reasons := sinktest.WantRejected(t, s, 9, 4)
	if !strings.Contains(reasons[4], "failed to parse field [n]") {
		t.Errorf("the reason is not Elasticsearch's: %s", reasons[4])
	}
	want := map[string]string{"fine": "8", "busy": "7", "down": "3", "bad gateway": "6", "conflict": "50"}
	docs := n.documents(t, index)
	for _, doc := range docs {
		if got := decode[struct{ N int }](t, doc.Source).N; fmt.Sprint(got) != want[doc.ID] {
			t.Errorf("document %q has n = %d, want %s", doc.ID, got, want[doc.ID])
		}
	}
	if len(docs) != len(want) {
		t.Errorf("the index holds %d documents, want %d", len(docs), len(want))
	}
	counters := s.(pipeline.Reporter).Report().Counters
	if counters["retried"] != 8 || counters["superseded"] != 1 {
		t.Errorf("the counters are %v, want 8 retried (4 items, twice) and 1 superseded", counters)
	}
}

// 401 for a while, then the node is down for a while, then all is well.
func TestT49NothingIsLostWhileTheServerRefusesAll(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	g := newGate(t, n)
	s := sinktest.Open(t, newConfig(g.url, index), sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 2), gone(3, 1))
	for _, refusal := range []struct {
		status int
		kind   string
		words  []string
	}{
		{401, "security_exception", []string{"401", "api_key"}},
		{403, "security_exception", []string{"403", "privilege"}},
		{403, "cluster_block_exception", []string{"403", "block"}},
		{429, "es_rejected_execution_exception", []string{"429", "es_rejected_execution_exception"}},
		{503, "master_not_discovered_exception", []string{"503"}},
		{504, "timeout", []string{"504"}},
		{400, "illegal_argument_exception", []string{"400"}},
		{404, "no_such_thing", []string{"404", "urls"}},
	} {
		g.status(refusal.status, refusal.kind)
		for range 3 {
			sinktest.WantWaiting(t, s, 4, append(refusal.words, g.url)...)
		}
	}
	g.onBulk(nil)
	sinktest.Flush(t, s, 4)
	wantOrders(t, n, index, map[int]int64{2: 2})
	if r := s.(pipeline.Reporter).Report(); r.Phase != "live" || r.Detail != "" {
		t.Errorf("after it got through the sink reports %q %q", r.Phase, r.Detail)
	}
}

func TestT49WrongURLIsSaid(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<html>It works!</html>")
	}))
	t.Cleanup(page.Close)
	missing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(missing.Close)
	for address, word := range map[string]string{
		closed.URL:  "connection refused",
		page.URL:    "not Elasticsearch",
		missing.URL: "is this Elasticsearch",
	} {
		s := sinktest.Open(t, newConfig(address, "orders"), sinktest.NewEnv(t))
		sinktest.Write(t, s, order(1, 1))
		sinktest.WantWaiting(t, s, 2, address, word)
	}
}

func TestPasswordAndKeyAreSentAndNotShown(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	password := newConfig(server.URL, "orders")
	password.User, password.Password = "ann", configs.NewSecret("geheim")
	key := newConfig(server.URL, "orders")
	key.APIKey = configs.NewSecret("c2VjcmV0")
	for _, config := range []pipeline.SinkConfig{password, key} {
		s := sinktest.Open(t, config, sinktest.NewEnv(t))
		sinktest.WantWaiting(t, s, 1, "401")
		err := s.Flush(t.Context(), sinktest.UpTo(1))
		if strings.Contains(fmt.Sprintf("%v %+v %+v", err, config, s), "geheim") || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("the secret is shown: %v", err)
		}
	}
	if got[0] != "Basic YW5uOmdlaGVpbQ==" || got[len(got)-1] != "APIKey c2VjcmV0" && got[len(got)-1] != "ApiKey c2VjcmV0" {
		t.Errorf("the server got %q", got)
	}
}
