package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A GapError says that records of a partition which should be there cannot be read.
type GapError struct {
	Partition uint32
	From      int64 // the first offset that is missing, or that was asked for
	To        int64 // the offset of the next record that can be read; -1 if there is none
	Cause     error // a *DamageError where bytes are wrong
}

func (e *GapError) Error() string {
	at := fmt.Sprintf("from offset %d on, and no record of it follows", e.From)
	switch {
	case e.To == e.From:
		at = fmt.Sprintf("in one go: before offset %d lies damage, which took none of its records", e.From)
	case e.To >= 0:
		at = fmt.Sprintf("at offsets %d to %d", e.From, e.To-1)
	}
	return fmt.Sprintf("partition %d cannot be read %s: %v", e.Partition, at, e.Cause)
}

// Unwrap returns the cause.
func (e *GapError) Unwrap() error { return e.Cause }

// errMissing is the cause of a gap between whole frames.
var errMissing = errors.New("the segments that held them are missing")

// Records calls f with the records of a partition from an offset on, until it fails. Records are given as they were
// stored, those of transactions that were aborted or are open too, but not those that a user has deleted. Where some
// cannot be read gap is called, before what follows them is given; its error ends the reading too. Damage that is known
// to lie before the first record asked for is none.
func (p *Peek) Records(partition uint32, from int64, f func(Record) error, gap func(*GapError) error) error {
	w, err := openWalk(p.fsys, p.dir, true)
	if err != nil {
		return err
	}
	from = max(from, p.Starts[partition])
	r := &peekReader{peek: p, partition: partition, from: from, next: from, f: f, gap: gap}
	w.each = r.frame
	for i, base := range w.bases {
		if i+1 < len(w.bases) && p.without(base, w.bases[i+1], partition, from) {
			continue
		}
		if err := r.segment(w, base); err != nil {
			return err
		}
	}
	return r.end()
}

// without says whether a sealed segment's index shows that it holds nothing of a partition from an offset on.
func (p *Peek) without(base, end uint64, partition uint32, from int64) bool {
	seg := &segment{base: base, path: filepath.Join(p.dir, segName(base))}
	x, err := readIndex(p.fsys, seg)
	if err != nil || seg.end() != end {
		return false
	}
	return !slices.ContainsFunc(x.spans, func(e spanEntry) bool { return e.partition == partition && e.span.next > from })
}

// peekReader reads one partition's records out of a walk.
type peekReader struct {
	peek      *Peek
	partition uint32
	from      int64
	next      int64 // where the partition goes on, from at least
	met       bool  // next is what the last batch says
	problems  []error
	older     error // the damage that was met since the last batch, of an earlier segment
	walker    walker
	f         func(Record) error
	gap       func(*GapError) error
}

// segment reads one segment. What retention takes away meanwhile is no gap.
func (r *peekReader) segment(w *walk, base uint64) error {
	r.problems = nil
	err := r.peek.walk(w, base, &r.problems)
	if errors.Is(err, os.ErrNotExist) {
		r.met, err = false, nil
	}
	if err == nil && r.older == nil && len(r.problems) > 0 {
		r.older = r.problems[0]
	}
	r.problems = nil
	return err
}

// damage returns the first damage since the last batch.
func (r *peekReader) damage(seg *segment) error {
	if r.older != nil || len(r.problems) == 0 {
		return r.older
	}
	if _, err := r.peek.fsys.Stat(seg.path); errors.Is(err, os.ErrNotExist) {
		r.met = false // retention took it, and its file is written anew
		return nil
	}
	return r.problems[0]
}

func (r *peekReader) frame(seg *segment, h *frameHeader, frame []byte) error {
	at := frameHeaderBytes + h.dirBytes()
	for i := range h.dirBytes() / dirEntryBytes {
		d := entryAt(frame, i)
		data := frame[at : at+int(d.length)]
		at += int(d.length)
		if d.partition != r.partition {
			continue
		}
		if err := r.follows(seg, d.baseOffset); err != nil {
			return err
		}
		if err := r.batch(h, data); err != nil {
			return err
		}
		r.met, r.next = true, max(r.from, d.baseOffset+int64(d.records))
	}
	return nil
}

// follows tells of what should have been before a batch at this offset.
func (r *peekReader) follows(seg *segment, offset int64) error {
	cause := r.damage(seg)
	if cause == nil && r.met && offset > r.next {
		cause = errMissing
	}
	r.older, r.problems = nil, r.problems[:0]
	if cause == nil || offset <= r.from {
		return nil
	}
	return r.gap(&GapError{Partition: r.partition, From: min(r.next, offset), To: offset, Cause: cause})
}

// end tells of damage behind which there is no batch of the partition.
func (r *peekReader) end() error {
	if r.older == nil {
		return nil
	}
	return r.gap(&GapError{Partition: r.partition, From: r.next, To: -1, Cause: r.older})
}

func (r *peekReader) batch(h *frameHeader, data []byte) error {
	b := parseHeader(data)
	if b.BaseOffset+int64(b.Records) <= r.from || b.Control() {
		return nil
	}
	err := r.walker.each(b, data[batchHeaderBytes:], func(p *plainRecord) error {
		if p.offset < r.from {
			return nil
		}
		return r.f(p.own(r.partition, h.stamp))
	})
	if err != nil {
		return fmt.Errorf("batch at offset %d of partition %d: %w", b.BaseOffset, r.partition, err)
	}
	return nil
}
