package shop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
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

// CompareSearch holds a table against its index, field by field, and returns how many rows
// both have.
func (s *Shop) CompareSearch(ctx context.Context, table string) (int, error) {
	want, err := s.Database.rows(ctx, "SELECT * FROM shop."+table)
	if err != nil {
		return 0, err
	}
	got, err := s.documents(ctx, "shop-"+table)
	if err != nil {
		return 0, err
	}
	if err := differ(want, got); err != nil {
		return 0, fmt.Errorf("MySQL shop.%s and Elasticsearch shop-%s: %w", table, table, err)
	}
	return len(want), nil
}

// documents reads a whole index (at most 10,000 documents) as text.
func (s *Shop) documents(ctx context.Context, index string) (map[string]map[string]string, error) {
	if err := s.ask(ctx, http.MethodPost, "/"+index+"/_refresh", nil); err != nil {
		return nil, err
	}
	var answer struct {
		Hits struct {
			Hits []struct {
				ID     string                     `json:"_id"`
				Source map[string]json.RawMessage `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if err := s.ask(ctx, http.MethodGet, "/"+index+"/_search?size=10000", &answer); err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for _, hit := range answer.Hits.Hits {
		doc := map[string]string{}
		for name, raw := range hit.Source {
			if text, ok := asText(raw); ok {
				doc[name] = text
			}
		}
		out[hit.ID] = doc
	}
	return out, nil
}

// asText returns a JSON value as SELECT would show it; null is no value.
func asText(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return text, true
	}
	return string(raw), string(raw) != "null"
}

func (s *Shop) ask(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.Search.URL()+path, nil)
	if err != nil {
		return err
	}
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

// ReadFiles returns the lines of all files below a folder, by stream, in the order
// of the files' names.
func ReadFiles(dir string) (map[string][]string, error) {
	out := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), ".zst") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := zstd.NewReader(f)
		if err != nil {
			return err
		}
		defer z.Close()
		stream := filepath.Base(filepath.Dir(path))
		lines := bufio.NewScanner(z)
		for lines.Scan() {
			out[stream] = append(out[stream], lines.Text())
		}
		return lines.Err()
	})
	return out, err
}

// CompareFiles holds the files below a folder against nginx's log and the events posted,
// and returns how many lines and events there are.
func (s *Shop) CompareFiles(dir string) (lines, events int, err error) {
	files, err := ReadFiles(dir)
	if err != nil {
		return 0, 0, err
	}
	log, err := os.ReadFile(s.Nginx.AccessLog())
	if err != nil {
		return 0, 0, err
	}
	lines, events = len(files["web.access"]), len(files["app.events"])
	if logged := bytes.Count(log, []byte("\n")); lines != logged || lines != s.Site.Requests {
		return 0, 0, fmt.Errorf("%d requests, %d lines in nginx's log, %d lines in files", s.Site.Requests, logged, lines)
	}
	if events != s.App.Posted() {
		return 0, 0, fmt.Errorf("%d events posted, %d lines in files", s.App.Posted(), events)
	}
	return lines, events, inOrder(files["app.events"])
}

// inOrder wants the events in the order of their own times and no id twice; they were
// posted with clocks up to a second behind.
func inOrder(lines []string) error {
	var last time.Time
	seen := map[string]bool{}
	for i, line := range lines {
		var event struct {
			ID string    `json:"id"`
			TS time.Time `json:"ts"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return fmt.Errorf("event in line %d: %w", i+1, err)
		}
		if seen[event.ID] {
			return fmt.Errorf("event %s stands twice in the files", event.ID)
		}
		seen[event.ID] = true
		if event.TS.Before(last) {
			return fmt.Errorf("event %s of %s comes after one of %s", event.ID, event.TS, last)
		}
		last = event.TS
	}
	return nil
}
