package nginx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// How often files are looked at. A rotated and deleted file that appeared and went
// between two looks was never seen; so the pause is short where something happens.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = 200 * time.Millisecond
	scanEvery     = time.Second
)

// follower is one run of a source. It belongs to Run's goroutine.
type follower struct {
	*Source
	disk   disk
	now    func() time.Time
	sleep  func(time.Duration)
	out    pipeline.Emitter
	parser *parser
	buffer []byte
	series []*series
	parked []logState // of logs that the paths no longer name

	silent  []string         // patterns that match nothing
	odd     map[string]error // paths that name a device or a pipe
	scanned time.Time        // when the folders were last looked at
	whole   time.Time        // when a look that saw all of them began
	dirty   bool             // the state has changed since it was last emitted
}

func newFollower(s *Source, out pipeline.Emitter) *follower {
	s.events.logger = s.log
	return &follower{Source: s, disk: system{}, now: time.Now, sleep: time.Sleep, out: out, parser: newParser(s.template), buffer: make([]byte, tailLength+chunkSize), odd: map[string]error{}}
}

func (w *follower) close() {
	for _, s := range w.series {
		s.close()
	}
}

// begin opens what the state knows and what the paths name.
func (w *follower) begin(st state, fresh bool) error {
	matches := w.match()
	w.scanned, w.whole = w.now(), w.now()
	states := map[string][]fileState{}
	for _, logState := range st.Logs {
		if !w.names(logState.Base) && len(matches[logState.Base]) == 0 {
			w.parked = append(w.parked, logState)
			continue
		}
		states[logState.Base] = logState.Files
	}
	logs := bases(matches, states)
	l := w.newListing(logs)
	for _, base := range logs {
		if err := w.beginLog(base, states[base], time.UnixMicro(st.At), fresh && w.config.Start == "end", l); err != nil {
			return err
		}
	}
	if w.once {
		if err := w.limit(); err != nil {
			return err
		}
	}
	w.dirty = true
	w.report()
	return nil
}

// bases returns the logs of both maps in a fixed order.
func bases(matches map[string][]string, states map[string][]fileState) []string {
	all := map[string]bool{}
	for base := range matches {
		all[base] = true
	}
	for base := range states {
		all[base] = true
	}
	names := make([]string, 0, len(all))
	for base := range all {
		names = append(names, base)
	}
	slices.Sort(names)
	return names
}

// follow reads until ctx ends, or all that was there at the start is emitted.
func (w *follower) follow(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	wait := shortestPause
	for {
		progress, err := w.round(ctx)
		switch {
		case err != nil:
			return err
		case progress:
			wait = shortestPause
		case w.once && w.finished():
			return w.end(ctx)
		default:
			if err := w.rest(ctx); err != nil {
				return err
			}
			pause.Reset(wait)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			wait = min(2*wait, longestPause)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// rest is what is done while there is nothing to read.
func (w *follower) rest(ctx context.Context) error {
	if w.rotated() || w.now().Sub(w.scanned) >= scanEvery {
		if err := w.rescan(); err != nil {
			return err
		}
	}
	return w.move(ctx)
}

// round lets each log read a piece. Of one log the oldest file that has something
// goes first, so that lines come in the order in which they were written.
func (w *follower) round(ctx context.Context) (progress bool, err error) {
	for _, s := range w.series {
		for i := 0; i < len(s.files); i++ {
			moved, err := w.step(ctx, s, s.files[i])
			if err != nil {
				return progress, err
			}
			if moved {
				progress = true
				break
			}
		}
	}
	if progress && w.now().Sub(w.scanned) >= scanEvery {
		return progress, w.rescan()
	}
	return progress, nil
}

// move emits the state if it changed while no line was read.
func (w *follower) move(ctx context.Context) error {
	if !w.dirty {
		return nil
	}
	return w.emit(ctx, nil)
}

func (w *follower) emit(ctx context.Context, records []pipeline.Record) error {
	w.dirty = false
	st := state{Version: 1, At: w.whole.UnixMicro(), Logs: slices.Clone(w.parked)}
	for _, s := range w.series {
		st.Logs = append(st.Logs, s.state())
	}
	return w.out.Emit(ctx, records, st.position())
}

// limit notes the sizes at the start, for Once.
func (w *follower) limit() error {
	for _, s := range w.series {
		for _, f := range s.files {
			if f.content == nil {
				continue
			}
			st, err := f.content.stat()
			if err != nil {
				return err
			}
			f.limit = f.content.length(st) // -1 for a compressed file: all of it
		}
	}
	return nil
}

func (w *follower) finished() bool {
	for _, s := range w.series {
		for _, f := range s.files {
			if !f.done && !f.ended {
				return false
			}
		}
	}
	return true
}

// end closes a run with Once. What could not be read makes it a failure: the caller
// must not take what there is for all.
func (w *follower) end(ctx context.Context) error {
	if err := w.move(ctx); err != nil {
		return err
	}
	if err := w.out.Flush(ctx); err != nil {
		return err
	}
	var problems []error
	for path, err := range w.odd {
		problems = append(problems, fmt.Errorf("%s %w", path, err))
	}
	for _, s := range w.series {
		for path, err := range s.problems {
			problems = append(problems, fmt.Errorf("reading %s: %w", path, err))
		}
		for _, f := range s.files {
			if f.damaged != nil {
				problems = append(problems, fmt.Errorf("reading %s: %w", f.path, f.damaged))
			}
		}
	}
	w.report()
	return errors.Join(problems...)
}

// report keeps the state of things for Report.
func (w *follower) report() {
	var behind int64
	files := 0
	lag := time.Duration(0)
	problems := maps.Clone(w.odd)
	for _, s := range w.series {
		for path, err := range s.problems {
			problems[path] = err
		}
		for _, f := range s.files {
			if f.done || f.content == nil || f.unsure {
				continue
			}
			files++
			if f.damaged != nil {
				problems[f.path] = f.damaged
			}
			if st, err := f.content.stat(); err == nil && f.content.length(st) > f.offset {
				behind += st.size - f.offset
				if f.time > 0 {
					lag = max(lag, w.now().Sub(time.UnixMicro(f.time)))
				}
			}
		}
	}
	w.events.saw(files, behind, lag, w.silent, problems)
}
