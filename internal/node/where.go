package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/daybook-data/daybook/pipeline"
)

// Where says which journal a verb that only reads looks at. The zero value is the
// embedded journal in ./data.
type Where struct {
	File    string
	Dir     string
	Brokers []string
}

// config returns the journal section that w stands for.
func (w Where) config() (pipeline.JournalConfig, error) {
	given := 0
	for _, is := range []bool{w.File != "", w.Dir != "", len(w.Brokers) > 0} {
		if is {
			given++
		}
	}
	if given > 1 {
		return pipeline.JournalConfig{}, fmt.Errorf("%w: give one of --file, --data and --brokers", ErrConfig)
	}
	if w.File != "" {
		f, err := lookAt(w.File)
		if err != nil {
			return pipeline.JournalConfig{}, err
		}
		return f.Journal, nil
	}
	c := pipeline.JournalConfig{Dir: w.Dir, Brokers: w.Brokers, Compress: "lz4"}
	if given == 0 {
		c.Dir = "data"
	}
	return c, nil
}

// beside opens the journal for reading: through the process that has it open, or by itself
// where there is none. The returned function closes all that was opened.
func beside(ctx context.Context, c pipeline.JournalConfig, log *slog.Logger) (*pipeline.Journal, func() error, error) {
	if len(c.Brokers) > 0 {
		return client(ctx, journalOptions(c, log))
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, nil, fmt.Errorf("%w: no journal in %s: %w; it is made by the first `daybook run` or `server` there, and --data, -f and --brokers name another one", ErrEnvironment, c.Dir, err)
	}
	conn, running, err := dialSocket(ctx, dir, kafkaSocket)
	if err != nil {
		return nil, nil, err
	}
	if running {
		conn.Close()
		return besideRunning(ctx, c, dir, log)
	}
	all := newStores(log)
	j, err := all.journal(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return j, func() error { j.Close(); return all.close() }, nil
}

// besideRunning is a client of the process that has the folder open.
func besideRunning(ctx context.Context, c pipeline.JournalConfig, dir string, log *slog.Logger) (*pipeline.Journal, func() error, error) {
	o := journalOptions(c, log)
	o.Seeds = []string{embedded}
	o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, running, err := dialSocket(ctx, dir, kafkaSocket)
		if err == nil && !running {
			err = fmt.Errorf("the process that had %s open has ended", dir)
		}
		return conn, err
	}
	return client(ctx, o)
}

// client opens a journal that is another process's, and returns what closes it.
func client(ctx context.Context, o pipeline.JournalOptions) (*pipeline.Journal, func() error, error) {
	j, err := reach(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return j, func() error { j.Close(); return nil }, nil
}
