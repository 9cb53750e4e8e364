package services_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/elastic/go-elasticsearch/v8"

	"github.com/daybook-data/daybook/internal/services"
)

func TestElasticsearchKeepsDataThroughCrash(t *testing.T) {
	a := services.ElasticsearchForTest(t, services.Options{})
	b := shared.Elasticsearch(t)
	for _, e := range []*services.Elasticsearch{a, b} {
		ask(t, http.MethodPut, e.URL()+"/docs", `{"settings":{"number_of_replicas":0}}`)
	}
	lifecycle{
		a: a.Server, b: b.Server, close: a.Close,
		write: func(t *testing.T, addr string) {
			ask(t, http.MethodPut, "http://"+addr+"/docs/_doc/1?version=5&version_type=external_gte&refresh=true", `{"x":1}`)
		},
		count: func(t *testing.T, addr string) int {
			var answer struct{ Count int }
			if err := json.Unmarshal(ask(t, http.MethodGet, "http://"+addr+"/docs/_count", ""), &answer); err != nil {
				t.Fatal(err)
			}
			return answer.Count
		},
	}.test(t)
}

func TestElasticsearchSatisfiesTheOfficialClient(t *testing.T) {
	e := shared.Elasticsearch(t)
	client, err := elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{e.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.Info().Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(info.Version.Int, "8.19.") {
		t.Errorf("version %s, want 8.19", info.Version.Int)
	}
	if ok, err := client.Ping().Do(t.Context()); !ok || err != nil {
		t.Errorf("Ping says %v, %v", ok, err)
	}
}

func TestElasticsearchListsAndDeletesDataStreams(t *testing.T) {
	url := shared.Elasticsearch(t).URL()
	ask(t, http.MethodPut, url+"/_index_template/events",
		`{"index_patterns":["events-*"],"data_stream":{},"template":{"settings":{"number_of_replicas":0}}}`)
	ask(t, http.MethodPost, url+"/events-web/_doc?refresh=true", `{"@timestamp":"2026-01-02T03:04:05Z"}`)
	if got := ask(t, http.MethodGet, url+"/_data_stream/events-*", ""); !strings.Contains(string(got), `"name":"events-web"`) {
		t.Errorf("data streams %s, want events-web among them", got)
	}
	ask(t, http.MethodDelete, url+"/_data_stream/events-web", "")
	if got := ask(t, http.MethodGet, url+"/_data_stream", ""); string(got) != `{"data_streams":[]}` {
		t.Errorf("after the deletion: %s, want none", got)
	}
}

// ask sends a request, expects 2xx and returns the answer's body.
func ask(t *testing.T, method, url, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %s", method, url, resp.Status, answer)
	}
	return answer
}
