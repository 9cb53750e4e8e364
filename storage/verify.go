package storage

import "github.com/daybook-data/daybook/internal/vfs"

// Report is what Verify found.
type Report struct {
	Segments, Frames, Batches int
	Records                   int64
	Bytes                     int64
	FirstIndex, LastIndex     uint64 // raft's
	FirstPosition             uint64
	EndPosition               uint64
	DurableTo                 uint64 // as the mark file says
	Partitions                map[uint32]PartitionReport
	Problems                  []error // *DamageError where bytes are wrong
}

// PartitionReport is what a journal holds of a partition.
type PartitionReport struct {
	First, Next int64
	Batches     int
	Records     int64
}

// Verify reads a journal that no process has open, checks every byte of it, and changes nothing. The error is about not
// being able to look; what is wrong with the journal is in the report.
func Verify(dir string) (*Report, error) { return VerifyFS(vfs.OS{}, dir) }

// VerifyFS is Verify on another file system.
func VerifyFS(fsys vfs.FS, dir string) (*Report, error) {
	r := &Report{Partitions: map[uint32]PartitionReport{}}
	w, err := openWalk(fsys, dir, false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	r.Problems = append(r.Problems, w.problems...)
	r.FirstPosition = w.tail.pos
	w.each = func(_ *segment, h *frameHeader, frame []byte) error {
		r.Frames++
		r.Bytes += int64(h.length)
		if r.FirstIndex == 0 {
			r.FirstIndex = h.index
		}
		r.LastIndex = h.index
		for i := range h.dirBytes() / dirEntryBytes {
			d := entryAt(frame, i)
			p, ok := r.Partitions[d.partition]
			if !ok {
				p.First = d.baseOffset
			}
			p.Next = d.baseOffset + int64(d.records)
			p.Batches++
			p.Records += int64(d.records)
			r.Partitions[d.partition] = p
			r.Batches++
			r.Records += int64(d.records)
		}
		return nil
	}
	for _, base := range w.bases {
		r.Segments++
		if err := w.segment(base, &r.Problems); err != nil {
			return nil, err
		}
	}
	r.EndPosition, r.DurableTo = w.tail.pos, w.durable
	if w.tail.pos < w.durable && len(r.Problems) == 0 {
		r.Problems = append(r.Problems, &DamageError{File: dir, Position: w.tail.pos, End: w.durable, Reason: "the log ends before the point that was on stable storage"})
	}
	if w.start != nil && len(r.Problems) == 0 {
		if why := w.start.endsEarly(r.LastIndex); why != "" {
			r.Problems = append(r.Problems, &DamageError{File: dir, Position: w.tail.pos, Reason: why})
		}
	}
	return r, nil
}
