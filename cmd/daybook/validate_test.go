package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAStreamThatNobodyFillsIsTold(t *testing.T) {
	t.Parallel()
	slip := write(t, strings.Replace(good, "streams: [app.events]", "streams: [app.evnts]", 1))
	var out, warnings bytes.Buffer
	if code := run(t.Context(), []string{"validate", slip}, &out, &warnings); code != exitOK {
		t.Errorf("exit code %d: %s", code, &warnings)
	}
	const want = `sink archive reads stream app.evnts, which no source fills; did you mean "app.events"?`
	if !strings.Contains(warnings.String(), slip+": warning: "+want) || !strings.Contains(out.String(), "shop.yaml: ok") {
		t.Errorf("got %q and %q", &warnings, &out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := &stopper{mark: "a sink waits for a stream that nobody fills", stop: cancel}
	if code := run(ctx, []string{"run", slip}, &out, log); code != exitOK || !strings.Contains(log.String(), "app.events") {
		t.Errorf("a run ends with %d and says %q", code, log)
	}
}

// stopper stops a run that has written the mark.
type stopper struct {
	mu sync.Mutex
	bytes.Buffer
	mark string
	stop func()
}

func (s *stopper) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(string(b), s.mark) {
		s.stop()
	}
	return s.Buffer.Write(b)
}

func TestStreamsThatAreFilledAreNotTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	source, sink, _ := strings.Cut(good, "sinks:\n")
	fills := put("fills.yaml", source)
	reads := put("reads.yaml", "version: 1\npipeline: read\njournal: {dir: DIR/data}\nsinks:\n"+sink)
	refused := put("refused.yaml", strings.Replace(good, "streams: [app.events]", "streams: [app.events, daybook.late.shop.archive]", 1))
	elsewhere := put("elsewhere.yaml", "version: 1\npipeline: read\njournal: {brokers: [\"127.0.0.1:1\"]}\nsinks:\n"+sink)
	for name, files := range map[string][]string{"another file's": {fills, reads}, "what is put aside": {refused}, "behind brokers": {elsewhere}} {
		var out, warnings bytes.Buffer
		if code := run(t.Context(), append([]string{"validate"}, files...), &out, &warnings); code != exitOK || warnings.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", name, code, &warnings)
		}
	}
	var out, warnings bytes.Buffer
	if run(t.Context(), []string{"validate", reads}, &out, &warnings); !strings.Contains(warnings.String(), "which no source fills\n") {
		t.Errorf("alone: got %q", &warnings)
	}
	if code := run(t.Context(), []string{"run", fills, "--once"}, &out, &warnings); code != exitOK {
		t.Fatal(warnings.String())
	}
	warnings.Reset()
	if run(t.Context(), []string{"validate", reads}, &out, &warnings); !strings.Contains(warnings.String(), "may have it from before") {
		t.Errorf("with a journal that is closed: got %q", &warnings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"run", fills}, io.Discard, io.Discard) }()
	for deadline := time.Now().Add(time.Minute); warnings.Len() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("beside a worker that has the stream: got %q", &warnings)
			break
		}
		warnings.Reset()
		run(t.Context(), []string{"validate", reads}, &out, &warnings)
	}
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("the worker ended with %d", code)
	}
	warnings.Reset()
	if run(t.Context(), []string{"run", reads, "--once"}, &out, &warnings); strings.Contains(warnings.String(), "nobody fills") {
		t.Errorf("a run on a journal that has the stream says %q", &warnings)
	}
}
