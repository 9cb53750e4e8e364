package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Apply does it. Interrupted anywhere it leaves a journal that still refuses to open, and can be repaired again.
func (r *Repair) Apply() error {
	to := filepath.Join(r.Dir, r.Quarantine)
	if err := r.fsys.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := r.fsys.SyncDir(r.Dir); err != nil {
		return err
	}
	if r.Keep == KeepNewer {
		return r.applyNewer(to)
	}
	return r.applyOlder(to)
}

// applyNewer keeps copies of the indexes first, as they hold the new front, then moves the segments, and then writes the
// front: a start in between finds the first segment missing and stops.
func (r *Repair) applyNewer(to string) error {
	for _, name := range r.Files {
		from := idxPath(filepath.Join(r.Dir, name))
		if data, err := vfs.ReadFile(r.fsys, from); err == nil {
			if err := vfs.WriteFile(r.fsys, filepath.Join(to, filepath.Base(from)), data, 0o644); err != nil {
				return err
			}
		}
	}
	if err := r.move(to); err != nil {
		return err
	}
	s, fresh, err := openStart(r.fsys, r.Dir)
	if err != nil || fresh {
		return errors.Join(err, ErrCannotRepair)
	}
	defer s.close()
	s.front = r.front
	return s.write()
}

// applyOlder lowers the mark before anything is cut, as every cut does (FORMAT.md, writing 4).
func (r *Repair) applyOlder(to string) error {
	m, _, err := openMark(r.fsys, r.Dir)
	if err != nil {
		return err
	}
	defer m.file.Close()
	if r.CutFile != "" {
		if err := r.keepBytes(filepath.Join(to, fmt.Sprintf("%s.from-%d", r.CutFile, r.CutAt))); err != nil {
			return err
		}
	}
	if err := m.setSynced(r.From, markOpen); err != nil {
		return err
	}
	if err := r.doubt(); err != nil {
		return err
	}
	slices.Reverse(r.Files) // the last one first: what is left is always a log
	if err := r.move(to); err != nil || r.CutFile == "" {
		return err
	}
	path := filepath.Join(r.Dir, r.CutFile)
	if err := r.setAside(idxPath(path), to); err != nil {
		return err
	}
	f, err := r.fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(r.CutAt); err != nil {
		return err
	}
	return f.Sync()
}

// doubt notes that the journal is without entries that it had stored.
func (r *Repair) doubt() error {
	s, fresh, err := openStart(r.fsys, r.Dir)
	if err != nil || fresh {
		return errors.Join(err, ErrCannotRepair)
	}
	defer s.close()
	s.values[doubtKey] = []byte{1}
	return s.write()
}

// keepBytes copies what is cut from a file.
func (r *Repair) keepBytes(path string) error {
	in, err := r.fsys.OpenFile(filepath.Join(r.Dir, r.CutFile), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := r.fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	buf := make([]byte, scanBuffer)
	for off := int64(0); ; {
		n, err := in.ReadAt(buf, r.CutAt+off)
		if _, werr := out.WriteAt(buf[:n], off); werr != nil {
			return werr
		}
		if off += int64(n); err == io.EOF {
			return out.Sync()
		}
		if err != nil {
			return err
		}
	}
}

// move moves the segments with their index files, and makes that durable.
func (r *Repair) move(to string) error {
	for _, name := range r.Files {
		if err := r.setAside(filepath.Join(r.Dir, name), to); err != nil {
			return err
		}
		for _, suffix := range indexSuffixes {
			if err := r.setAside(strings.TrimSuffix(filepath.Join(r.Dir, name), segSuffix)+suffix, to); err != nil {
				return err
			}
		}
	}
	return errors.Join(r.fsys.SyncDir(to), r.fsys.SyncDir(r.Dir))
}

// setAside moves a file, if it is there.
func (r *Repair) setAside(path, to string) error {
	err := r.fsys.Rename(path, filepath.Join(to, filepath.Base(path)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
