package elasticsearch_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// node asks Elasticsearch directly, past the sink and what breaks its line.
type node struct{ url string }

// ask sends a request and returns the answer, whatever its status.
func (n *node) ask(t testing.TB, method, path, body string) (status int, answer []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, n.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// must is ask for requests that are to succeed.
func (n *node) must(t testing.TB, method, path, body string) []byte {
	t.Helper()
	status, answer := n.ask(t, method, path, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

func decode[T any](t testing.TB, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return v
}

type document struct {
	Index   string          `json:"_index"`
	ID      string          `json:"_id"`
	Routing string          `json:"_routing"`
	Version uint64          `json:"_version"`
	Source  json.RawMessage `json:"_source"`
}

// documents returns all documents of the indices, at most 10,000.
func (n *node) documents(t testing.TB, indices string) []document {
	t.Helper()
	n.must(t, "POST", "/"+indices+"/_refresh", "")
	type hits struct{ Hits struct{ Hits []document } }
	return decode[hits](t, n.must(t, "POST", "/"+indices+"/_search", `{"size":10000,"version":true}`)).Hits.Hits
}

// count returns how many documents the indices have.
func (n *node) count(t testing.TB, indices string) int {
	t.Helper()
	n.must(t, "POST", "/"+indices+"/_refresh", "")
	return decode[struct{ Count int }](t, n.must(t, "GET", "/"+indices+"/_count", "")).Count
}
