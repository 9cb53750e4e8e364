package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
)

// Flush makes all files that were begun visible, together with the checkpoint. Records that have no place are named
// before anything is committed, so that the cursor passes them only once the caller has kept them.
//
// Guarantee 12: data and cursor become visible by one rename.
func (s *Sink) Flush(ctx context.Context, c pipeline.Checkpoint) error {
	if len(s.rejected) > 0 {
		err := &pipeline.RejectedError{Rejected: s.rejected}
		s.rejected = nil
		return err
	}
	err := judge("folder "+s.place.root, s.flush(ctx, c))
	if err == nil {
		s.waiting = ""
	} else {
		s.waiting = err.Error()
	}
	return err
}

func (s *Sink) flush(ctx context.Context, c pipeline.Checkpoint) error {
	if s.manifest == nil {
		return errors.New("flushing a file sink that was not resumed")
	}
	if !s.committed {
		s.failed = nil
		if err := s.seal(ctx); err != nil {
			return err
		}
		if err := s.commit(c); err != nil {
			return err
		}
	}
	if err := s.publish(ctx, s.next.Files); err != nil {
		return err
	}
	for _, f := range s.next.Files {
		s.files++
		s.bytes += f.Size
	}
	s.manifest, s.next, s.committed = s.next, nil, false
	s.open, s.inOrder, s.memory = map[string]*part{}, nil, 0
	s.since, s.first = s.manifest.Stamp, 0
	return nil
}

// seal is steps 1 and 2 of a flush.
func (s *Sink) seal(ctx context.Context) error {
	for _, p := range s.inOrder {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.sealed {
			continue
		}
		s.memory -= int64(len(p.raw))
		p.pack(s.packer)
		if err := p.write(s.fs, s.parts); err != nil {
			return err
		}
		if err := p.sync(s.fs, s.parts); err != nil {
			return err
		}
		p.sealed = true
	}
	if len(s.inOrder) == 0 {
		return nil
	}
	if err := s.fs.SyncDir(s.parts); err != nil {
		return fmt.Errorf("syncing the folder of the parts: %w", err)
	}
	return s.wantParts()
}

// wantParts looks whether the parts are where their names say. What is written to an open file goes to that file, though another
// folder may stand where its folder was: a copy of it, a restored backup, another disk.
func (s *Sink) wantParts() error {
	for _, p := range s.inOrder {
		name := filepath.Join(s.parts, p.name)
		info, err := s.fs.Stat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil || info.Size() != p.size {
			return &pipeline.StopError{
				Code: "folder-replaced", Where: name,
				Err: fmt.Errorf("%d bytes were written to this file, and are not in it: another folder was put in the place of the sink's while it was writing", p.size),
				Fix: "start again: the sink goes on from what the folder holds, and writes again what it lacks",
			}
		}
	}
	return nil
}

// commit is step 3.
func (s *Sink) commit(c pipeline.Checkpoint) error {
	next := *s.manifest
	next.Streams = maps.Clone(next.Streams)
	next.addStreams(s.env)
	next.move(c)
	next.Stamp = max(next.Stamp, s.stamp)
	next.Files = nil
	for _, p := range s.inOrder {
		next.Files = append(next.Files, entry{Part: p.name, Path: p.path, Size: p.size, CRC: p.sum, Records: p.records})
	}
	if len(next.Files) > 0 {
		next.Number++
	}
	data, err := next.encode()
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	if err := vfs.WriteFile(s.fs, s.manifestName(), data, 0o644); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	s.next, s.committed = &next, true
	return nil
}

func (s *Sink) manifestName() string { return filepath.Join(s.hidden, "manifest") }
