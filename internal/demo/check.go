package main

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

// rows reads a table as text, as SELECT shows it, by primary key.
func (s *stage) rows(ctx context.Context, query string) (map[string]map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for rows.Next() {
		values := make([]*string, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, v := range values {
			if v != nil {
				row[columns[i]] = *v
			}
		}
		out[row["id"]] = row
	}
	return out, rows.Err()
}

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

func (s *stage) compareSearch(ctx context.Context, table string) error {
	want, err := s.rows(ctx, "SELECT * FROM shop."+table)
	if err != nil {
		return err
	}
	got, err := s.documents(ctx, "shop-"+table)
	if err != nil {
		return err
	}
	if err := differ(want, got); err != nil {
		return fmt.Errorf("shop-%s: %w", table, err)
	}
	say("%5d rows in MySQL shop.%s = %5d documents in Elasticsearch shop-%s, field by field", len(want), table, len(got), table)
	return nil
}

// documents reads a whole index (at most 10,000 documents) as text.
func (s *stage) documents(ctx context.Context, index string) (map[string]map[string]string, error) {
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

func (s *stage) ask(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.search.URL()+path, nil)
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

func (s *stage) compareCache(ctx context.Context) error {
	want, err := s.rows(ctx, "SELECT * FROM shop.orders WHERE status <> 'draft'")
	if err != nil {
		return err
	}
	got := map[string]map[string]string{}
	scan := s.cache.Scan(ctx, 0, "order:*", 1000).Iterator()
	for scan.Next(ctx) {
		hash, err := s.cache.HGetAll(ctx, scan.Val()).Result()
		if err != nil {
			return err
		}
		got[strings.TrimPrefix(scan.Val(), "order:")] = hash
	}
	if err := scan.Err(); err != nil {
		return err
	}
	if err := differ(want, got); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	say("%5d orders that are no draft      = %5d hashes in Redis, field by field", len(want), len(got))
	return nil
}

// readFiles returns the lines of all files below a folder, by stream, in the order
// of the files' names.
func readFiles(dir string) (map[string][]string, error) {
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

func (s *stage) compareFiles(dir string) error {
	files, err := readFiles(dir)
	if err != nil {
		return err
	}
	log, err := os.ReadFile(s.nginx.AccessLog())
	if err != nil {
		return err
	}
	logged := bytes.Count(log, []byte("\n"))
	if got := len(files["web.access"]); got != logged || got != s.shop.requests {
		return fmt.Errorf("%d requests, %d lines in nginx's log, %d lines in files", s.shop.requests, logged, got)
	}
	say("%5d lines in nginx's access.log   = %5d lines in files", logged, len(files["web.access"]))
	if got := len(files["app.events"]); got != s.shop.events {
		return fmt.Errorf("%d events posted, %d lines in files", s.shop.events, got)
	}
	say("%5d events posted                 = %5d lines in files", s.shop.events, len(files["app.events"]))
	return s.inOrder(files["app.events"])
}

// inOrder wants the events in the order of their own times and no id twice; they were
// posted with clocks up to a second behind.
func (s *stage) inOrder(lines []string) error {
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
	say("      in event-time order, each id once (they were posted up to 1 s out of order)")
	return nil
}
