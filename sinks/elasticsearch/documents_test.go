package elasticsearch_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

func TestDocumentIsTheRowByteForByte(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index, `{"mappings":{"dynamic":false}}`)
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	row := `{"id": 1,"big":18446744073709551615,"price":1.10,"exp":1E+400,"none":null,"text":"ü\u00fc\n","list":[1, {"x":null}]}`
	d := sinktest.Put(1, row)
	d.Key = []byte(`{"id":1}`)
	sinktest.Write(t, s, d)
	sinktest.Flush(t, s, 2)
	if got := string(n.must(t, "GET", "/"+index+"/_source/1", "")); got != row {
		t.Errorf("the document is\n%s, want\n%s", got, row)
	}
	docs := n.documents(t, index)
	if len(docs) != 1 || docs[0].Version != uint64(sinktest.Stamp+1) {
		t.Errorf("the documents are %+v, want one with the version %d", docs, sinktest.Stamp+1)
	}
}

func TestPrettyPrintedRowDoesNotBreakTheRequest(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	n.must(t, "PUT", "/"+index, `{"mappings":{"dynamic":false}}`)
	s := sinktest.Open(t, newConfig(n.url, index), sinktest.NewEnv(t))
	pretty := sinktest.Put(1, "{\r\n  \"id\": 1,\n  \"big\": 18446744073709551615\n}")
	pretty.Key = []byte("1")
	broken := sinktest.Put(2, "{\n\"id\": 2,\n \"x\": nonsense\n}\n{\"delete\":{\"_id\":\"1\"}}")
	broken.Key = []byte("2")
	sinktest.Write(t, s, pretty, broken, order(3, 3))
	sinktest.WantRejected(t, s, 4, 2)
	if got := string(n.must(t, "GET", "/"+index+"/_source/1", "")); got != `{"id":1,"big":18446744073709551615}` {
		t.Errorf("the document is %s", got)
	}
	if got := n.count(t, index); got != 2 {
		t.Errorf("the index holds %d documents, want 2", got)
	}
}

func TestIDsAsTheyCome(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	config := newConfig(n.url, index)
	config.ID = "{row.name}"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	longest := strings.Repeat("ü", 256)
	names := []string{`with "quotes" and \`, "with\nline\tand\x01control", "Grüße 世界 🎉", "<a>&amp;", longest}
	for i, name := range names {
		text, _ := jsonText(name)
		sinktest.Write(t, s, sinktest.Put(int64(i), `{"name":`+text+`}`))
	}
	tooLong, _ := jsonText(longest + "x")
	sinktest.Write(t, s, sinktest.Put(10, `{"name":`+tooLong+`}`), sinktest.Put(11, `{"name":""}`), sinktest.Put(12, `{"name":null}`), sinktest.Put(13, `{}`))
	reasons := sinktest.WantRejected(t, s, 14, 10, 11, 12, 13)
	if !strings.Contains(reasons[10], "512") {
		t.Errorf("the reason for an id of 513 bytes: %s", reasons[10])
	}
	got := map[string]bool{}
	for _, doc := range n.documents(t, index) {
		got[doc.ID] = true
	}
	for _, name := range names {
		if !got[name] {
			t.Errorf("there is no document with the id %q", name)
		}
	}
}

func TestEventsWithoutIdentityAreNumbered(t *testing.T) {
	t.Parallel()
	n, prefix := newIndex(t)
	config := newConfig(n.url, prefix+"-{stream}-{yyyy.MM.dd}")
	config.ID = ""
	env := sinktest.NewEnv(t)
	s := sinktest.Open(t, config, env)
	event := func(offset int64) pipeline.Delivery {
		d := sinktest.Put(offset, fmt.Sprintf(`{"line":%d}`, offset))
		d.Op, d.Table, d.Time = pipeline.OpCreate, "", 1_790_000_000_000_000+offset*86_400_000_000
		return d
	}
	for range 2 {
		sinktest.Write(t, s, event(0), event(1), event(2))
		sinktest.Flush(t, s, 3)
	}
	docs := n.documents(t, prefix+"-*")
	got := map[string]string{}
	for _, doc := range docs {
		got[doc.ID] = doc.Index
	}
	day := prefix + "-" + sinktest.Stream + "-2026.09."
	if len(docs) != 3 || got[sinktest.Stream+"-0-1"] != day+"22" || got[sinktest.Stream+"-0-2"] != day+"23" {
		t.Errorf("the documents are %v", got)
	}

	// A change has no place in an index by date: its row's next change would be elsewhere.
	if err := s.Write(t.Context(), []pipeline.Delivery{order(3, 1)}); err == nil {
		t.Error("a change was taken for an index by date")
	} else {
		sinktest.WantStop(t, err, "index-by-date")
	}
}

func TestIndexNamesAreLowerCaseAndValid(t *testing.T) {
	t.Parallel()
	n, prefix := newIndex(t)
	config := newConfig(n.url, prefix+"-{kind}")
	config.ID = "{id}"
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	kinds := []string{"Orders", "a b", "x/y", "ok_1", "a,b", "*", "", "naïve", "new\nline"}
	for i, kind := range kinds {
		text, _ := jsonText(kind)
		sinktest.Write(t, s, sinktest.Put(int64(i), fmt.Sprintf(`{"id":%d,"kind":%s}`, i, text)))
	}
	sinktest.WantRejected(t, s, 20, 1, 2, 4, 5, 8)
	got := map[string]bool{}
	for _, doc := range n.documents(t, prefix+"-*") {
		got[doc.Index] = true
	}
	for _, want := range []string{"orders", "ok_1", "", "naïve"} {
		if !got[prefix+"-"+want] {
			t.Errorf("there is no index %q: %v", prefix+"-"+want, got)
		}
	}
	sinktest.Write(t, s, sinktest.Put(20, `{"id":20,"kind":"ORDERS"}`))
	sinktest.WantStop(t, s.Flush(t.Context(), sinktest.UpTo(21)), "index-name-collision")
}

func TestCompressedOverTLS(t *testing.T) {
	t.Parallel()
	n, index := newIndex(t)
	target, err := url.Parse(n.url)
	if err != nil {
		t.Fatal(err)
	}
	var encodings sync.Map
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encodings.Store(r.Header.Get("Content-Encoding"), true)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config := newConfig(server.URL, index)
	config.Compress = true
	s := sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.WantWaiting(t, s, 1, "certificate")

	config.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	pemText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(config.CAFile, pemText, 0o600); err != nil {
		t.Fatal(err)
	}
	s = sinktest.Open(t, config, sinktest.NewEnv(t))
	sinktest.Write(t, s, order(1, 1), order(2, 2))
	sinktest.Flush(t, s, 3)
	wantOrders(t, n, index, map[int]int64{1: 1, 2: 2})
	if _, ok := encodings.Load("gzip"); !ok {
		t.Error("no request was compressed")
	}
}
