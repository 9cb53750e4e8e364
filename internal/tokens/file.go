package tokens

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// file is keys in a file, read again when it changes: who renews keys does not restart
// what uses them.
type file struct {
	path, algorithm string
	log             *slog.Logger

	mu      sync.Mutex
	set     keySet // these two are written under mu
	changed time.Time
}

func newFile(path, algorithm string, log *slog.Logger) (*file, error) {
	f := &file{path: path, algorithm: algorithm, log: log}
	return f, f.load()
}

// load reads the file if it is another than before; f.mu is held, or f not yet shared.
func (f *file) load() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("reading the keys of tokens: %w", err)
	}
	if f.set != nil && info.ModTime().Equal(f.changed) {
		return nil
	}
	f.changed = info.ModTime() // one that is wrong is read and told of once
	text, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("reading the keys of tokens: %w", err)
	}
	set, err := parseKeys(text, f.algorithm)
	if err != nil {
		return fmt.Errorf("reading the keys of tokens in %s: %w", f.path, err)
	}
	f.set = set
	return nil
}

// named implements keySource. While a new file can't be read the old keys stay in use.
func (f *file) named(_ context.Context, id string) ([]any, error) {
	f.mu.Lock()
	if err := f.load(); err != nil {
		f.log.Warn("the old keys stay in use", "error", err)
	}
	set := f.set
	f.mu.Unlock()
	return set.find(id)
}
