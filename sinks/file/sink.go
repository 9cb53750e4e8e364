package file

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/pipeline"
)

const (
	maxOpen   = 64       // parts that are open at a time
	maxMemory = 64 << 20 // bytes that wait in memory, of all files
	maxFiles  = 1000     // from so many files on a flush is due
)

// A Sink writes files. See the package's comment for how.
type Sink struct {
	fs     vfs.FS
	place  *place
	packer *packer
	roll   RollConfig
	env    pipeline.SinkEnv

	hidden, parts string // folders
	lock          io.Closer
	manifest      *manifest // as it is on disk; nil before Resume
	next          *manifest // being committed; nil outside of a flush
	committed     bool      // next is on disk, its files are not all in place

	open     map[string]*part // by the file's name without number
	inOrder  []*part          // in the order they were begun
	memory   int64            // bytes waiting in raw
	line     []byte
	since    int64 // the append stamp at the last flush, 0 for none
	first    int64 // that of the first record written after it, 0 for none
	stamp    int64 // the one that Due saw last
	failed   error // of a write that is tried again by Flush
	rejected []pipeline.Rejected
	durable  map[string]bool // folders known to be there for good

	waiting      string // what Flush failed with last
	files, bytes int64
}

var (
	_ pipeline.Roller   = (*Sink)(nil)
	_ pipeline.Resumer  = (*Sink)(nil)
	_ pipeline.Reporter = (*Sink)(nil)
)

func newSink(fsys vfs.FS, p *place, pk *packer, roll RollConfig, env pipeline.SinkEnv) *Sink {
	hidden := filepath.Join(p.root, ".daybook-"+escape(env.Pipeline+"-"+env.Name, maxSegment))
	return &Sink{
		fs: fsys, place: p, packer: pk, roll: roll, env: env,
		hidden: hidden, parts: filepath.Join(hidden, "parts"),
		open: map[string]*part{}, durable: map[string]bool{},
	}
}

// Write puts each record into the file its path names. What the disk refuses waits in memory for Flush.
func (s *Sink) Write(_ context.Context, batch []pipeline.Delivery) error {
	for i := range batch {
		d := &batch[i]
		if s.first == 0 {
			s.first = d.Stamp
		}
		if err := s.add(d); err != nil {
			s.rejected = append(s.rejected, pipeline.Rejected{Delivery: *d, Reason: err.Error()})
		}
	}
	return nil
}

// add returns a reason to reject the record.
func (s *Sink) add(d *pipeline.Delivery) error {
	name, err := s.place.of(d, s.env.Name)
	if err != nil {
		return err
	}
	if s.line, err = appendLine(s.line[:0], d); err != nil {
		return err
	}
	p := s.open[name]
	if p == nil {
		p = s.begin(name)
	}
	p.raw = append(p.raw, s.line...)
	p.records++
	s.memory += int64(len(s.line))
	if len(p.raw) >= pieceBytes {
		s.spill(p)
	}
	if s.memory > maxMemory {
		s.spillLargest()
	}
	return nil
}

// begin starts a file. Its number in the flush follows from the order of the records.
func (s *Sink) begin(name string) *part {
	number := s.number()
	name = strings.Clone(name)
	p := &part{name: fmt.Sprintf("%06d-%06d.part", number, len(s.inOrder)), path: s.place.path(name, number)}
	s.open[name] = p
	s.inOrder = append(s.inOrder, p)
	return p
}

// number is that of the next flush with files.
func (s *Sink) number() uint64 { return s.manifest.Number + 1 }

// spill compresses and writes what waits for one file. A failure is remembered: Flush tries again, and until then
// what was compressed waits.
func (s *Sink) spill(p *part) {
	s.memory -= int64(len(p.raw))
	p.pack(s.packer)
	if s.failed == nil && p.file == nil {
		s.failed = s.closeSome()
	}
	if s.failed == nil {
		s.failed = p.write(s.fs, s.parts)
	}
}

// spillLargest frees half of the memory. Which files are written early depends on the records alone, and so do their
// pieces.
func (s *Sink) spillLargest() {
	bySize := slices.Clone(s.inOrder)
	slices.SortStableFunc(bySize, func(a, b *part) int { return len(b.raw) - len(a.raw) })
	for _, p := range bySize {
		if s.memory <= maxMemory/2 {
			return
		}
		s.spill(p)
	}
}

// closeSome makes room for one more open part.
func (s *Sink) closeSome() error {
	var open []*part
	for _, p := range s.inOrder {
		if p.file != nil {
			open = append(open, p)
		}
	}
	if len(open) < maxOpen {
		return nil
	}
	for _, p := range open[:len(open)-maxOpen+1] {
		if err := p.sync(s.fs, s.parts); err != nil {
			return err
		}
	}
	return nil
}

// Due says when files end: by the size of the largest, their number, or the append stamp, which also moves the cursor
// when nothing was written.
func (s *Sink) Due(stamp int64) bool {
	s.stamp = max(s.stamp, stamp)
	if s.failed != nil || s.committed || len(s.inOrder) >= maxFiles || len(s.rejected) >= maxFiles {
		return true
	}
	since := max(s.since, s.first)
	if since == 0 {
		s.since = stamp // nothing was ever flushed: the first period begins here
		return false
	}
	period := s.roll.Time.Microseconds()
	return stamp/period > since/period || s.largest() >= s.roll.Size
}

// largest returns the size of the largest file.
func (s *Sink) largest() int64 {
	var most int64
	for _, p := range s.inOrder {
		n := p.length()
		if s.packer.kind == plain {
			n += int64(len(p.raw))
		}
		most = max(most, n)
	}
	return most
}

// Report implements pipeline.Reporter.
func (s *Sink) Report() pipeline.Report {
	r := pipeline.Report{Counters: map[string]int64{"files": s.files, "file_bytes": s.bytes, "parts": int64(len(s.inOrder))}}
	switch {
	case s.waiting != "":
		r.Phase, r.Detail = "waiting", s.waiting
	case len(s.inOrder) > 0:
		r.Detail = s.unseen()
	}
	return r
}

// unseen says what is written and not visible yet, and when it will be.
func (s *Sink) unseen() string {
	var records int64
	for _, p := range s.inOrder {
		records += p.records
	}
	period := s.roll.Time.Microseconds()
	end := time.UnixMicro((max(s.since, s.first)/period + 1) * period).UTC()
	return fmt.Sprintf("records in files that are not visible yet: %d in %d; they are complete at %s (roll.time), or when one has the size of roll.size",
		records, len(s.inOrder), end.Format(time.RFC3339))
}

// Close leaves what is not committed to the next run, which removes it.
func (s *Sink) Close() error {
	var first error
	for _, p := range s.inOrder {
		if err := p.close(); err != nil && first == nil {
			first = fmt.Errorf("closing %s: %w", p.name, err)
		}
	}
	if s.lock != nil {
		if err := s.lock.Close(); err != nil && first == nil {
			first = fmt.Errorf("unlocking %s: %w", s.hidden, err)
		}
		s.lock = nil
	}
	return first
}
