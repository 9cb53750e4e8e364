package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

// unfilled is a stream that a sink reads and that no source of an embedded journal fills,
// which is likely a slip. It is told and no error: another file may fill it that is not
// among those at hand, or it is from before, and a sink that waits holds nobody else.
type unfilled struct {
	sink, stream string
	filled       []string // those that there are
}

// String names what is meant, if a name is near.
func (u unfilled) String() string {
	text := fmt.Sprintf("sink %s reads stream %s, which no source fills%s", u.sink, u.stream, configs.Suggestion(u.stream, u.filled))
	if len(u.filled) == 0 {
		return text
	}
	return text + " (filled are " + strings.Join(u.filled, ", ") + ")"
}

// unfilledOf returns the streams of a file's sinks that none of the files with its journal
// fills. Behind brokers nobody can know.
func unfilledOf(f *pipeline.File, files []*pipeline.File) (out []unfilled) {
	if f.Journal.Dir == "" {
		return nil
	}
	var filled, aside []string
	for _, other := range files {
		if filepath.Clean(other.Journal.Dir) != filepath.Clean(f.Journal.Dir) {
			continue
		}
		for i := range other.Sources {
			filled = append(filled, other.Sources[i].Stream)
		}
		for i := range other.Sinks {
			aside = append(aside, pipeline.DeadStream(other.Pipeline, other.Sinks[i].Name), pipeline.LateStream(other.Pipeline, other.Sinks[i].Name))
		}
	}
	slices.Sort(filled)
	filled = slices.Compact(filled)
	for i := range f.Sinks {
		for _, stream := range f.Sinks[i].Streams {
			if !slices.Contains(filled, stream) && !slices.Contains(aside, stream) {
				out = append(out, unfilled{f.Sinks[i].Name, stream, filled})
			}
		}
	}
	return out
}

// Validate checks pipeline files as Run does, says of each that it is right, and warns of
// what is right and yet likely a slip. It opens no journal and no connection to another
// machine.
func Validate(ctx context.Context, paths []string, out, warnings io.Writer) error {
	files, err := loadAll(paths)
	for _, f := range files {
		for _, u := range unfilledOf(f, files) {
			if where, there := mayHave(ctx, f.Journal.Dir, u.stream); !there {
				fmt.Fprintf(warnings, "%s: warning: %v%s\n", f.Path, u, where)
			}
		}
		fmt.Fprintf(out, "%s: ok\n", f.Path)
	}
	return err
}

// mayHave asks the process that has a journal open for a stream; where there is a journal
// and no such process it says so, as opening it could be in the way of one that starts.
func mayHave(ctx context.Context, dir, stream string) (unknown string, there bool) {
	if _, err := os.Stat(dir); err != nil {
		return "", false
	}
	unknown = "; the journal in " + dir + " may have it from before: no process runs there to say so"
	abs, err := filepath.Abs(dir)
	if err != nil {
		return unknown, false
	}
	conn, running, err := dialSocket(ctx, abs, kafkaSocket)
	if err != nil || !running {
		return unknown, false
	}
	conn.Close()
	j, done, err := besideRunning(ctx, pipeline.JournalConfig{Dir: dir, Compress: "lz4"}, abs, slog.New(slog.DiscardHandler))
	if err != nil {
		return unknown, false
	}
	streams, err := j.Streams(ctx)
	if closed := done(); err != nil || closed != nil {
		return unknown, false
	}
	return "", slices.Contains(streams, stream)
}

// warnUnfilled says in the log which sinks wait for what nobody fills.
func (r *running) warnUnfilled(ctx context.Context, f *pipeline.File, files []*pipeline.File, j *pipeline.Journal) error {
	lonely := unfilledOf(f, files)
	if len(lonely) == 0 {
		return nil
	}
	streams, err := j.Streams(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	for _, u := range lonely {
		if !slices.Contains(streams, u.stream) {
			r.options.Log.Warn("a sink waits for a stream that nobody fills", "pipeline", f.Pipeline, "what", u.String())
		}
	}
	return nil
}
