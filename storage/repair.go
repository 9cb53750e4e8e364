package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Keep says which side of the damage a repair keeps.
type Keep string

// The sides. A log is one piece, so what is not on the kept side goes, damaged or not.
const (
	// KeepNewer gives up the front of the log up to behind the damage. Offsets go on as if nothing had happened.
	KeepNewer Keep = "newer"
	// KeepOlder gives up the damage and all behind it. The offsets of what is lost are given out again.
	KeepOlder Keep = "older"
)

// Repair is what would make a damaged journal one that opens again. Nothing is deleted: what goes is moved into a folder
// within the journal's, which no start looks at.
type Repair struct {
	Dir      string
	Problems []error
	Keep     Keep
	// From and To are the journal positions of what is lost.
	From, To uint64
	// Lost are the offsets of each partition that are lost, as far as what is on disk tells.
	Lost map[uint32]PartitionReport
	// Files are those that are moved as a whole; of CutFile only the bytes from CutAt on are.
	Files   []string
	CutFile string
	CutAt   int64
	// Quarantine is the folder they are moved into.
	Quarantine string

	fsys  vfs.FS
	w     *walk
	front *tail // of the repaired log, if its front goes
}

// ErrCannotRepair says that a journal's damage is of a kind that needs a backup or a replica.
var ErrCannotRepair = errors.New("this damage cannot be repaired from what is in the directory: restore it from a replica or a backup")

// PlanRepair reads a journal and says what would repair it; nil if a start would find nothing wrong. The journal's lock
// is held until Close. keep may be empty: then the newer side is kept if it can be, else the older.
func PlanRepair(fsys vfs.FS, dir string, keep Keep) (*Repair, error) {
	w, err := openWalk(fsys, dir, false)
	if err != nil {
		return nil, err
	}
	r := &Repair{Dir: dir, Keep: keep, Lost: map[uint32]PartitionReport{}, fsys: fsys, w: w}
	if err := r.plan(); err != nil || r.From == r.To {
		err = errors.Join(err, w.close())
		return nil, err
	}
	return r, nil
}

// Close gives the lock back.
func (r *Repair) Close() error { return r.w.close() }

func (r *Repair) plan() error {
	if r.w.start == nil && len(r.w.bases) > 0 {
		return fmt.Errorf("%s: %w: neither copy of the start file can be read", r.Dir, ErrCannotRepair)
	}
	from, to, end, err := r.survey()
	if err != nil || len(r.Problems) == 0 {
		return err
	}
	if r.Keep != KeepOlder {
		if found := r.keepNewer(to); found {
			r.Keep = KeepNewer
			return r.losses(r.w.start.front.pos, r.front.pos)
		}
		if r.Keep == KeepNewer {
			return fmt.Errorf("%s: %w: behind the damage no segment's beginning is described by an index", r.Dir, ErrCannotRepair)
		}
	}
	r.Keep = KeepOlder
	if from < r.w.start.front.pos {
		return fmt.Errorf("%s: %w", r.Dir, ErrCannotRepair)
	}
	r.keepOlder(from)
	return r.losses(from, max(end, r.w.durable))
}

// survey walks the log and returns where the first fault begins, where the last one ends, and where the log does. A copy
// of the start file that is lost is no fault: a start makes it good.
func (r *Repair) survey() (from, to, end uint64, err error) {
	w := r.w
	w.each = func(*segment, *frameHeader, []byte) error { return nil }
	from = ^uint64(0)
	note := func(begin, stop uint64) { from, to = min(from, begin), max(to, stop) }
	if len(w.bases) > 0 && w.bases[0] != w.tail.pos {
		note(w.tail.pos, w.bases[0])
	}
	for i, base := range w.bases {
		had := len(r.Problems)
		if err := w.segment(base, &r.Problems); err != nil {
			return 0, 0, 0, err
		}
		for _, p := range r.Problems[had:] {
			d := &DamageError{}
			if errors.As(p, &d) {
				note(d.Position, max(d.End, d.Position+1))
			}
		}
		if i+1 < len(w.bases) && w.tail.pos < w.bases[i+1] && len(r.Problems) == had { // ends early: told by the next one
			note(w.tail.pos, w.bases[i+1])
		}
	}
	end = w.tail.pos
	if end < w.durable {
		note(end, w.durable)
		if len(r.Problems) == 0 {
			r.Problems = append(r.Problems, &DamageError{File: r.Dir, Position: end, End: w.durable, Reason: "the log ends before the point that was on stable storage"})
		}
	}
	return from, to, end, nil
}

// keepNewer looks for the first segment behind the damage whose beginning is known: the index of the one before has the
// state that it goes on from.
func (r *Repair) keepNewer(to uint64) bool {
	for _, base := range r.w.bases {
		if base < to || base == r.w.start.front.pos {
			continue
		}
		if r.front = r.stateAt(base); r.front != nil {
			for _, b := range r.w.bases {
				if b < base {
					r.Files = append(r.Files, segName(b))
				}
			}
			return true
		}
	}
	return false
}

// stateAt finds the state at a segment's beginning in the index of the segment before it, which may be in the quarantine
// of a repair that was cut off.
func (r *Repair) stateAt(base uint64) *tail {
	folders := []string{r.Dir}
	names, _ := r.fsys.ReadDir(r.Dir) // it was read before
	for _, n := range names {
		if strings.HasPrefix(n, quarantinePrefix) {
			folders = append(folders, filepath.Join(r.Dir, n))
		}
	}
	for _, dir := range folders {
		names, _ := r.fsys.ReadDir(dir)
		for _, n := range names {
			b, ok := parseSegName(strings.TrimSuffix(n, idxSuffix) + segSuffix)
			if !ok || !strings.HasSuffix(n, idxSuffix) || b >= base {
				continue
			}
			seg := &segment{base: b, path: filepath.Join(dir, segName(b))}
			if x, err := readIndex(r.fsys, seg); err == nil && x.end.pos == base {
				return x.end
			}
		}
	}
	return nil
}

// keepOlder plans the cut at a position.
func (r *Repair) keepOlder(at uint64) {
	for _, b := range r.w.bases {
		if b >= at && b != r.w.start.front.pos {
			r.Files = append(r.Files, segName(b))
		} else if b <= at {
			r.CutFile, r.CutAt = segName(b), int64(at-b)
		}
	}
}

// quarantinePrefix begins the names of the folders that a repair moves things into.
const quarantinePrefix = "quarantine-"
