package shop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

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

// CompareFiles holds the files below a folder, and what came too late for them, against nginx's log and the events posted:
// each record is in one of both. It returns how many lines and events there are.
func (s *Shop) CompareFiles(dir string, late map[string][]string) (lines, events int, err error) {
	files, err := ReadFiles(dir)
	if err != nil {
		return 0, 0, err
	}
	log, err := os.ReadFile(s.Nginx.AccessLog())
	if err != nil {
		return 0, 0, err
	}
	lines, err = countOnce(files["web.access"], late["web.access"], lineOfLog)
	if err != nil {
		return 0, 0, fmt.Errorf("web.access: %w", err)
	}
	events, err = countOnce(files["app.events"], late["app.events"], lineOfEvent)
	if err != nil {
		return 0, 0, fmt.Errorf("app.events: %w", err)
	}
	if logged := bytes.Count(log, []byte("\n")); lines != logged || lines != s.Site.Requests {
		return 0, 0, fmt.Errorf("%d requests, %d lines in nginx's log, %d in files, %d of them late", s.Site.Requests, logged, lines, len(late["web.access"]))
	}
	if events != s.App.Posted() {
		return 0, 0, fmt.Errorf("%d events posted, %d in files, %d of them late", s.App.Posted(), events, len(late["app.events"]))
	}
	return lines, events, nil
}

// countOnce wants the lines in the order of their own times, to the microsecond that event times have in a journal, and no
// id twice among them. Those that were late are counted too; a crash may have put one of them aside twice.
func countOnce(lines, late []string, parse func(line string) (id string, ts time.Time, err error)) (int, error) {
	var last time.Time
	seen := map[string]bool{}
	for i, line := range lines {
		id, ts, err := parse(line)
		if err != nil {
			return 0, fmt.Errorf("line %d: %w: %s", i+1, err, line)
		}
		if seen[id] {
			return 0, fmt.Errorf("line %d: %s stands twice in the files", i+1, id)
		}
		seen[id] = true
		ts = ts.Truncate(time.Microsecond)
		if ts.Before(last) {
			return 0, fmt.Errorf("line %d: %s of %s comes after one of %s", i+1, id, ts, last)
		}
		last = ts
	}
	aside := map[string]bool{}
	for _, line := range late {
		id, _, err := parse(line)
		if err != nil {
			return 0, fmt.Errorf("a late record: %w: %s", err, line)
		}
		if seen[id] {
			return 0, fmt.Errorf("%s is late, and in the files", id)
		}
		aside[id] = true
	}
	return len(seen) + len(aside), nil
}

func lineOfEvent(line string) (string, time.Time, error) {
	var event struct {
		ID string    `json:"id"`
		TS time.Time `json:"ts"`
	}
	err := json.Unmarshal([]byte(line), &event)
	return event.ID, event.TS, err
}

var visit = regexp.MustCompile(`visit=[0-9]+`)

func lineOfLog(line string) (string, time.Time, error) {
	var entry struct {
		Time    string `json:"time_local"`
		Request string `json:"request"`
	}
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		return "", time.Time{}, err
	}
	ts, err := time.Parse("02/Jan/2006:15:04:05 -0700", entry.Time)
	return visit.FindString(entry.Request), ts, err
}
