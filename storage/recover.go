package storage

import (
	"path/filepath"
	"slices"
	"strings"
)

// recover opens the files and builds the index. The numbers are those of the procedure in FORMAT.md.
//
// Guarantee 3.
func (j *Journal) recover() error {
	var err error
	var fresh bool
	if j.start, fresh, err = openStart(j.fsys, j.dir); err != nil { // 1
		return err
	}
	var was marked
	if j.mark, was, err = openMark(j.fsys, j.dir); err != nil { // 2
		return err
	}
	names, err := j.fsys.ReadDir(j.dir)
	if err != nil {
		return err
	}
	bases, err := j.tidy(names) // 3
	if err != nil {
		return err
	}
	if fresh {
		if len(bases) > 0 {
			return &DamageError{File: j.start.paths[0], Reason: "there are segments, but both copies of the start file (" + j.start.paths[1] + " is the other) are missing or fail their checksum"}
		}
		j.noteBoot(was, 0)
		if err := j.start.write(); err != nil {
			return err
		}
		if err := j.fsys.SyncDir(j.dir); err != nil {
			return err
		}
	}
	l, err := loadLog(j, bases, was) // 4 to 6
	if err != nil {
		return err
	}
	if j.noteBoot(was, l.tail.pos) || j.start.stale { // 7
		if err := j.start.write(); err != nil {
			l.abandon()
			return err
		}
	}
	return j.install(l)
}

// tidy sorts the directory's files: it returns the bases of the segments that belong to the log, in order, and removes
// what an interrupted trim or creation left.
func (j *Journal) tidy(names []string) (bases []uint64, err error) {
	for _, name := range names {
		path := filepath.Join(j.dir, name)
		base, isSeg := parseSegName(name)
		switch {
		case isSeg && base >= j.start.front.pos:
			bases = append(bases, base)
			continue
		case isSeg, strings.HasSuffix(name, ".tmp"):
			err = j.fsys.Remove(path)
		case strings.HasPrefix(name, sparePrefix):
			err = j.space.adopt(j.fsys, path)
		case slices.Contains(indexSuffixes[:], filepath.Ext(name)):
			seg := strings.TrimSuffix(name, filepath.Ext(name)) + segSuffix
			if b, ok := parseSegName(seg); ok && (b < j.start.front.pos || !slices.Contains(names, seg)) {
				err = j.fsys.Remove(path)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// install makes a loaded log the journal's.
func (j *Journal) install(l *loadedLog) error {
	last := l.index.segs[len(l.index.segs)-1]
	if err := j.fsys.SyncDir(j.dir); err != nil {
		l.abandon()
		return err
	}
	l.index.first = j.start.firstEntry()
	for _, s := range l.index.segs {
		s.discard, s.report = closeSegment, j.report
	}
	j.mu.Lock()
	l.index.raftFront = j.index.raftFront
	if j.index.segs == nil {
		l.index.raftFront = l.index.front.index
	}
	j.index = l.index
	j.mu.Unlock()
	j.tail, j.sealed = l.tail, l.sealed
	j.countVoters()
	j.app.aborted = l.aborted
	j.space.setCurrent(last, l.alloc, j.o.Now())
	j.durable.Store(l.tail.pos)
	j.markMu.Lock()
	defer j.markMu.Unlock()
	return j.mark.setSynced(l.tail.pos, markOpen)
}
