package nginx_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/nginx"
	"github.com/daybook-data/daybook/sources/sourcetest"
)

// open returns a source with the given section of YAML.
func open(t testing.TB, section string, once bool) *nginx.Source {
	t.Helper()
	var c nginx.Config
	if err := configs.Decode("test.yaml", []byte(section), &c); err != nil {
		t.Fatal(err)
	}
	s, err := c.OpenSource(pipeline.SourceEnv{Name: "web", Once: once, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*nginx.Source)
}

// folder is a folder of logs, and a writer that keeps the live file open as nginx does.
type folder struct {
	dir     string
	section string

	mu      sync.Mutex
	live    *os.File
	written int
	disturb []func(*folder) error
}

func newFolder(t *testing.T) *folder {
	dir := t.TempDir()
	f := &folder{dir: dir, section: fmt.Sprintf(`{paths: ['%s/access.log*'], format: '"$request_id" $msec $status', rotate_wait: 50ms}`, dir)}
	if err := f.reopen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.live.Close() })
	return f
}

func (f *folder) path(suffix string) string { return filepath.Join(f.dir, "access.log"+suffix) }

// reopen opens the live file, as USR1 makes nginx do.
func (f *folder) reopen() error {
	if f.live != nil {
		if err := f.live.Close(); err != nil {
			return err
		}
	}
	var err error
	f.live, err = os.OpenFile(f.path(""), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return err
}

// Open implements sourcetest.Origin.
func (f *folder) Open(t *testing.T, once bool) pipeline.Source { return open(t, f.section, once) }

// Write implements sourcetest.Origin. Lines are written in pieces that do not end at
// line breaks, since a reader may find any.
func (f *folder) Write(_ context.Context, n int) (ids []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var text []byte
	for range n {
		id := fmt.Sprintf("line-%d", f.written)
		f.written++
		ids = append(ids, id)
		text = fmt.Appendf(text, "%q %d.%03d 200\n", id, 1_790_000_000+f.written/1000, f.written%1000)
	}
	for len(text) > 0 {
		k := min(len(text), 37)
		if _, err := f.live.Write(text[:k]); err != nil {
			return nil, err
		}
		text = text[k:]
	}
	return ids, nil
}

// ID implements sourcetest.Origin.
func (f *folder) ID(r pipeline.Record) string {
	var line struct {
		ID       string `json:"request_id"`
		Unparsed string `json:"unparsed"`
	}
	if err := json.Unmarshal(r.Value, &line); err != nil || line.Unparsed != "" {
		return fmt.Sprintf("unparsed %s", r.Value)
	}
	return line.ID
}

// rename rotates as logrotate does without copytruncate: the old files move up, the
// oldest goes, nginx reopens.
func (f *folder) rename() error {
	if err := f.shift(); err != nil {
		return err
	}
	if err := os.Rename(f.path(""), f.path(".1")); err != nil {
		return err
	}
	return f.reopen()
}

// shift makes room for a .1.
func (f *folder) shift() error {
	for i := 98; i >= 1; i-- {
		for _, ext := range []string{"", ".gz"} {
			from, to := f.path(fmt.Sprintf(".%d%s", i, ext)), f.path(fmt.Sprintf(".%d%s", i+1, ext))
			if err := os.Rename(from, to); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
	return nil
}

// compress packs the file .n, if there is one.
func (f *folder) compress(n int) error {
	path := f.path(fmt.Sprintf(".%d", n))
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := writeGzip(path+".gz", string(text)); err != nil {
		return err
	}
	// As gzip does: the packed file is as old as the text.
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Chtimes(path+".gz", info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return os.Remove(path)
}

func writeGzip(path, text string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	if _, err := io.WriteString(z, text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return out.Close()
}

// copyTruncate rotates as logrotate does with copytruncate. Nothing is written
// between the copy and the truncation: what is, is lost by that design.
func (f *folder) copyTruncate() error {
	if err := f.shift(); err != nil {
		return err
	}
	text, err := os.ReadFile(f.path(""))
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path(".1"), text, 0o644); err != nil {
		return err
	}
	return os.Truncate(f.path(""), 0)
}

// Disturb implements sourcetest.Disturber.
func (f *folder) Disturb(_ context.Context, rng *rand.Rand) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disturb[rng.IntN(len(f.disturb))](f)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	ways := map[string][]func(*folder) error{
		"Rename": {(*folder).rename},
		"RenameAndCompress": {(*folder).rename, func(f *folder) error {
			if err := f.rename(); err != nil {
				return err
			}
			return f.compress(2)
		}},
		"CompressAtOnce": {func(f *folder) error {
			if err := f.rename(); err != nil {
				return err
			}
			return f.compress(1)
		}},
		"CopyTruncate":            {(*folder).copyTruncate},
		"CopyTruncateAndCompress": {(*folder).copyTruncate, func(f *folder) error { return f.compress(1) }, func(f *folder) error { return f.compress(2) }},
		"TwiceAtOnce": {func(f *folder) error {
			if err := f.rename(); err != nil {
				return err
			}
			if _, err := f.live.WriteString(""); err != nil {
				return err
			}
			return f.rename()
		}},
	}
	for name, disturb := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, func(t *testing.T) sourcetest.Origin {
				f := newFolder(t)
				f.disturb = disturb
				return f
			}, sourcetest.Options{
				Kills: 30,
				// A file that is compressed just while its folder is read is found a moment later.
				// A copy read after a crash may stand behind newer lines of the file it was taken from.
				Unordered: strings.Contains(name, "Compress") || name == "CopyTruncate",
			})
		})
	}
}
