package nginx

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// events is what the source tells of itself: counters and a few sentences. Safe for
// concurrent use.
type events struct {
	logger *slog.Logger
	counts counters

	mu     sync.Mutex // what a scan found is written and reported under mu, so that it fits together
	detail string
	lag    time.Duration
	behind atomic.Int64 // bytes
}

type counters struct {
	lines, unparsed, bytes, pieces                    atomic.Int64
	opened, finished, truncated, unread, lost, faults atomic.Int64
	files, silentPatterns, problems                   atomic.Int64
}

func (e *events) unreadable(path string, err error) {
	e.counts.faults.Add(1)
	e.logger.Warn("a log file can't be read; it is tried again", "file", path, "error", err)
}

func (e *events) nothingMatches(pattern string, why error) {
	if why != nil {
		e.logger.Warn("no file matches the path", "path", pattern, "error", why)
		return
	}
	e.logger.Warn("no file matches the path", "path", pattern)
}

// vanished tells of a file that went away while nobody was looking.
func (e *events) vanished(base string, offset int64) {
	e.counts.lost.Add(1)
	e.logger.Warn("a log file is gone that was being read; what stood in it behind the offset is lost unless it had been read to its end", "log", base, "offset", offset)
}

// cut tells of a truncation. unread is how much was known to be there and not read.
func (e *events) cut(path string, unread int64) {
	e.counts.truncated.Add(1)
	if unread > 0 {
		e.counts.unread.Add(unread)
		e.logger.Warn("a log file was truncated before all of it was read; the rest is read from its copy if there is one", "file", path, "bytes", unread)
	}
}

func (e *events) damaged(path string, err error) {
	e.counts.faults.Add(1)
	e.logger.Error("a log file is damaged; it is left and the others go on", "file", path, "error", err)
}

// saw keeps what a scan found for Report.
func (e *events) saw(files int, behind int64, lag time.Duration, silent []string, problems map[string]error) {
	parts := []string{fmt.Sprintf("%d files, %d bytes behind", files, behind)}
	for _, p := range silent {
		parts = append(parts, "no file matches "+p)
	}
	for path, err := range problems {
		parts = append(parts, fmt.Sprintf("%s: %v", path, err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.detail, e.lag = strings.Join(parts, "; "), lag
	e.counts.files.Store(int64(files))
	e.counts.silentPatterns.Store(int64(len(silent)))
	e.counts.problems.Store(int64(len(problems)))
	e.behind.Store(behind)
}

func (e *events) report() pipeline.Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := pipeline.Report{Phase: "live", Detail: e.detail, Lag: e.lag}
	switch {
	case e.counts.files.Load() == 0:
		r.Phase = "waiting"
	case e.behind.Load() > 1<<20:
		r.Phase = "catch-up"
	}
	c := &e.counts
	r.Counters = map[string]int64{
		"lines":            c.lines.Load(),
		"unparsed":         c.unparsed.Load(),
		"bytes":            c.bytes.Load(),
		"long_line_pieces": c.pieces.Load(),
		"files_opened":     c.opened.Load(),
		"files_finished":   c.finished.Load(),
		"files_followed":   c.files.Load(),
		"files_unreadable": c.problems.Load(),
		"faults":           c.faults.Load(),
		"files_vanished":   c.lost.Load(),
		"truncations":      c.truncated.Load(),
		"truncated_unread": c.unread.Load(),
		"silent_paths":     c.silentPatterns.Load(),
		"bytes_behind":     e.behind.Load(),
	}
	return r
}
