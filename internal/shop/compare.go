package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// differ names the first row that is not the same in both.
func differ(want, got map[string]map[string]string) error {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if !maps.Equal(want[id], got[id]) {
			return fmt.Errorf("id %s: the source has %v, the destination %v", id, want[id], got[id])
		}
	}
	if len(want) != len(got) {
		return fmt.Errorf("the source has %d rows, the destination %d", len(want), len(got))
	}
	return nil
}

// CompareSearch holds a table against the index of its name, see CompareIndex.
func (s *Shop) CompareSearch(ctx context.Context, table string) (int, error) {
	return s.CompareIndex(ctx, table, "shop-"+table)
}

// CompareIndex holds a table against an index, field by field, and returns how many rows
// both have.
func (s *Shop) CompareIndex(ctx context.Context, table, index string) (int, error) {
	want, err := s.Database.rows(ctx, "SELECT * FROM shop."+table)
	if err != nil {
		return 0, err
	}
	got, err := s.documents(ctx, index)
	if err != nil {
		return 0, err
	}
	if err := differ(want, got); err != nil {
		return 0, fmt.Errorf("MySQL shop.%s and Elasticsearch %s: %w", table, index, err)
	}
	return len(want), nil
}

// documents reads a whole index as text, a page at a time.
func (s *Shop) documents(ctx context.Context, index string) (map[string]map[string]string, error) {
	if err := s.ask(ctx, http.MethodPost, "/"+index+"/_refresh", nil, nil); err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	ask := func(page *searchPage) error {
		return s.ask(ctx, http.MethodGet, "/"+index+"/_search?size=5000&scroll=1m", nil, page)
	}
	for {
		var page searchPage
		if err := ask(&page); err != nil {
			return nil, err
		}
		next := map[string]string{"scroll": "1m", "scroll_id": page.Scroll}
		if len(page.Hits.Hits) == 0 {
			delete(next, "scroll")
			return out, s.ask(ctx, http.MethodDelete, "/_search/scroll", next, nil)
		}
		for _, hit := range page.Hits.Hits {
			out[hit.ID] = textOf(hit.Source)
		}
		ask = func(page *searchPage) error { return s.ask(ctx, http.MethodPost, "/_search/scroll", next, page) }
	}
}

// searchPage is an answer of Elasticsearch to a search that goes on.
type searchPage struct {
	Scroll string `json:"_scroll_id"`
	Hits   struct {
		Hits []struct {
			ID     string                     `json:"_id"`
			Source map[string]json.RawMessage `json:"_source"`
		} `json:"hits"`
	} `json:"hits"`
}

// textOf returns the fields of a JSON object as SELECT would show them, without those that are null.
func textOf(fields map[string]json.RawMessage) map[string]string {
	out := map[string]string{}
	for name, raw := range fields {
		if text, ok := asText(raw); ok {
			out[name] = text
		}
	}
	return out
}

// asText returns a JSON value as SELECT would show it; null is no value.
func asText(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return text, true
	}
	return string(raw), string(raw) != "null"
}

// ask sends a request, with a JSON text unless the question is nil, and decodes the answer unless into is nil.
func (s *Shop) ask(ctx context.Context, method, path string, question, into any) error {
	var body io.Reader
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.Search.URL()+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// CompareCache holds the orders that are no drafts against the hashes in Redis, field by
// field, and returns how many both have.
func (s *Shop) CompareCache(ctx context.Context) (int, error) {
	want, err := s.Database.rows(ctx, "SELECT * FROM shop.orders WHERE status <> 'draft'")
	if err != nil {
		return 0, err
	}
	got := map[string]map[string]string{}
	scan := s.cache.Scan(ctx, 0, "order:*", 1000).Iterator()
	for scan.Next(ctx) {
		hash, err := s.cache.HGetAll(ctx, scan.Val()).Result()
		if err != nil {
			return 0, err
		}
		got[strings.TrimPrefix(scan.Val(), "order:")] = hash
	}
	if err := scan.Err(); err != nil {
		return 0, err
	}
	if err := differ(want, got); err != nil {
		return 0, fmt.Errorf("orders that are no drafts and hashes in Redis: %w", err)
	}
	return len(want), nil
}
