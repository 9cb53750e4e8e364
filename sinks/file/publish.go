package file

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/daybook-data/daybook/pipeline"
)

// publish is steps 4 and 5 of a flush, and step 3 of the recovery: it can be begun again at any point.
//
// Guarantee 12.
func (s *Sink) publish(ctx context.Context, files []entry) error {
	touched := map[string]bool{}
	var folders []string
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		final := filepath.Join(s.place.root, filepath.FromSlash(f.Path))
		if folder := filepath.Dir(final); !touched[folder] {
			if err := s.makeFolder(folder); err != nil {
				return err
			}
			touched[folder] = true
			folders = append(folders, folder)
		}
		if err := s.publishOne(f, final); err != nil {
			return fmt.Errorf("making %s visible: %w", final, err)
		}
	}
	for _, folder := range folders {
		if err := s.fs.SyncDir(folder); err != nil {
			return fmt.Errorf("syncing folder %s: %w", folder, err)
		}
	}
	return nil
}

func (s *Sink) publishOne(f entry, final string) error {
	part := filepath.Join(s.parts, f.Part)
	if _, err := s.fs.Stat(part); errors.Is(err, fs.ErrNotExist) {
		return nil // it has been renamed
	} else if err != nil {
		return err
	}
	_, err := s.fs.Stat(final)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.fs.Rename(part, final)
	case err != nil:
		return err
	}
	same, err := s.isSame(f, final)
	if err != nil {
		return err
	}
	if same {
		return s.fs.Remove(part)
	}
	return &pipeline.StopError{
		Code: "file-taken", Where: final,
		Err: errors.New("another file has the name that the next file of the sink must have"),
		Fix: "move that file away: the sink then goes on where it is",
	}
}

// isSame compares a file with the manifest.
func (s *Sink) isSame(f entry, name string) (bool, error) {
	file, err := s.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if size, err := file.Size(); err != nil || size != f.Size {
		return false, err
	}
	h := crc32.New(castagnoli)
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, f.Size)); err != nil {
		return false, err
	}
	return h.Sum32() == f.CRC, nil
}

// makeFolder makes a folder below the root, and its name and those above it durable.
func (s *Sink) makeFolder(folder string) error {
	if s.durable[folder] {
		if _, err := s.fs.Stat(folder); err == nil {
			return nil // not taken away since
		}
	}
	if err := s.fs.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for at := folder; at != s.place.root && at != filepath.Dir(at); at = filepath.Dir(at) {
		if err := s.fs.SyncDir(filepath.Dir(at)); err != nil {
			return fmt.Errorf("syncing folder %s: %w", filepath.Dir(at), err)
		}
	}
	if len(s.durable) > 10_000 {
		clear(s.durable)
	}
	s.durable[folder] = true
	return nil
}
