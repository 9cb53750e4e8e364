package nginx

import (
	"context"
	"log/slog"

	"github.com/daybook-data/daybook/pipeline"
)

// Source follows log files. Report may be called at any time; Run is called once at
// a time.
type Source struct {
	config   Config
	template *template
	once     bool
	log      *slog.Logger
	events   events
}

var (
	_ pipeline.Source   = (*Source)(nil)
	_ pipeline.Reporter = (*Source)(nil)
)

// Report says how many files are followed, how far behind, and what can't be read.
func (s *Source) Report() pipeline.Report { return s.events.report() }

// Run follows the files until ctx ends; with Once, up to their ends at its start.
// Everything happens in the caller's goroutine.
func (s *Source) Run(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
	var st state
	if from != "" {
		var err error
		if st, err = parseState(from); err != nil {
			return err
		}
	}
	f := newFollower(s, out)
	defer f.close()
	if err := f.begin(st, from == ""); err != nil {
		return err
	}
	return f.follow(ctx)
}
