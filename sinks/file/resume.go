package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/daybook-data/daybook/pipeline"
)

// ours are the names that parts have, and their copies.
var ours = regexp.MustCompile(`^\d{6,}-\d{6,}\.part(\.copy)?$`)

// Resume brings the folder into the state of the last flush and returns its checkpoint.
func (s *Sink) Resume(ctx context.Context) (pipeline.Checkpoint, bool, error) {
	c, ok, err := s.resume(ctx)
	return c, ok, judge("folder "+s.place.root, err)
}

func (s *Sink) resume(ctx context.Context) (none pipeline.Checkpoint, ok bool, err error) {
	if err := s.takeFolder(); err != nil {
		return none, false, err
	}
	m, err := readManifest(s.fs, s.manifestName())
	if err != nil {
		return none, false, err
	}
	if m == nil {
		if len(s.env.Cursor) > 0 {
			return none, false, s.lost()
		}
		s.manifest = newManifest(s.env)
		return none, false, s.removeLeftovers(nil)
	}
	if err := m.check(s.env); err != nil {
		return none, false, &pipeline.StopError{
			Code: "target-of-another", Where: s.hidden, Err: err,
			Fix: "give the sink another path; or, if these files are no longer wanted, remove the whole folder " + s.place.root,
		}
	}
	if err := s.checkCursor(m); err != nil {
		return none, false, err
	}
	if err := s.publish(ctx, m.Files); err != nil {
		return none, false, err
	}
	if err := s.removeLeftovers(m.Files); err != nil {
		return none, false, err
	}
	s.manifest, s.since, s.stamp = m, m.Stamp, m.Stamp
	return m.checkpoint(), true, nil
}

// takeFolder makes the hidden folder and locks it.
func (s *Sink) takeFolder() error {
	if err := s.fs.MkdirAll(s.parts, 0o755); err != nil {
		return err
	}
	for _, folder := range []string{s.hidden, s.place.root} {
		if err := s.fs.SyncDir(folder); err != nil {
			return fmt.Errorf("syncing folder %s: %w", folder, err)
		}
	}
	if s.lock != nil {
		return nil
	}
	lock, err := s.fs.Lock(filepath.Join(s.hidden, "lock"))
	if err != nil {
		return err
	}
	s.lock = lock
	return nil
}

// checkCursor finds files that were set back: the cursor is committed after the manifest, so it is never above.
func (s *Sink) checkCursor(m *manifest) error {
	held := m.checkpoint().Offsets
	for p, at := range s.env.Cursor {
		if next, ok := held[p]; ok && next < at {
			return &pipeline.StopError{
				Code: "target-set-back", Where: s.hidden,
				Err: fmt.Errorf("the files go up to %s/%d@%d, but the sink had committed %d: an old copy was put back", p.Stream, p.Number, next, at),
				Fix: s.startAnew(),
			}
		}
	}
	return nil
}

func (s *Sink) lost() error {
	return &pipeline.StopError{
		Code: "target-lost", Where: s.hidden, Err: errors.New("the sink has a cursor, but its manifest is gone"),
		Fix: "if the folder is on a disk that is not mounted, mount it; else " + s.startAnew(),
	}
}

func (s *Sink) startAnew() string {
	return fmt.Sprintf("remove the folder %s and delete the sink's cursor, or rename the sink, to write all of it again", s.place.root)
}

// removeLeftovers removes parts that were never committed, and nothing else.
func (s *Sink) removeLeftovers(files []entry) error {
	names, err := s.fs.ReadDir(s.parts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for leftovers: %w", err)
	}
	keep := map[string]bool{}
	for _, f := range files {
		keep[f.Part] = true
	}
	for _, name := range names {
		if ours.MatchString(name) && !keep[name] {
			if err := s.fs.Remove(filepath.Join(s.parts, name)); err != nil {
				return fmt.Errorf("removing a leftover: %w", err)
			}
		}
	}
	return nil
}
