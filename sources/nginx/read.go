package nginx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// chunkSize is how much is read at once; a line that is longer makes the buffer grow.
const chunkSize = 256 << 10

// lineWait is how long Once waits for the end of a line that was begun before.
const lineWait = time.Second

// step reads one piece of a file and emits its lines. It reports whether there was
// something to do.
func (w *follower) step(ctx context.Context, s *series, f *file) (bool, error) {
	if f.done || f.ended || f.content == nil {
		return false, nil
	}
	st, err := f.content.stat()
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", f.path, err)
	}
	size, changed := f.content.length(st), st.changed
	if f.damaged != nil && changed.Equal(f.checked.changed) {
		f.ended = w.once
		return false, nil
	}
	if size >= 0 && size == f.looked && changed.Equal(f.lookedAt) {
		return w.idle(ctx, s, f, changed, nil)
	}
	if f.unsure {
		if size != 0 {
			settled, err := w.judge(s, f)
			if err != nil || !settled || f.content == nil {
				return settled, err
			}
		}
		if f.unsure { // there is nothing in it
			return w.idle(ctx, s, f, changed, []byte{})
		}
	}
	data, end, err := w.read(f)
	if errors.Is(err, errTruncated) {
		w.truncated(s, f)
		return true, w.rescan()
	}
	f.size = max(size, 0)
	if err != nil && !isCompressed(f.path) {
		return false, fmt.Errorf("reading %s: %w", f.path, err)
	}
	records, used := w.lines(s, f, data) // what can be read of a damaged file is kept
	if err != nil && used == 0 {
		w.notReadable(f, changed, err)
		return false, nil
	}
	f.damaged = nil
	if used > 0 {
		f.grownAt = w.now()
		w.events.counts.bytes.Add(int64(used))
		return true, w.emit(ctx, records)
	}
	if !end && len(data) == len(w.buffer)-len(f.tail) { // a line longer than the buffer
		w.buffer = make([]byte, min(2*len(w.buffer), int(w.config.MaxLine)+1+tailLength))
		return true, nil
	}
	return w.idle(ctx, s, f, changed, data)
}

var errTruncated = errors.New("the file was truncated")

// read returns what stands behind the offset, as much as the buffer takes, and
// whether the file ends there. It reads the bytes before the offset again: if they
// are others, the file was truncated and written anew.
func (w *follower) read(f *file) (data []byte, end bool, err error) {
	n, err := f.content.ReadAt(w.buffer, f.offset-int64(len(f.tail)))
	end = errors.Is(err, io.EOF)
	if err != nil && !end && n <= len(f.tail) {
		return nil, false, err
	}
	if n < len(f.tail) || !bytes.Equal(w.buffer[:len(f.tail)], f.tail) {
		return nil, false, errTruncated
	}
	if end {
		err = nil
	}
	return w.buffer[len(f.tail):n], end, err
}

// truncated begins the file anew and keeps what is needed to find its copy.
func (w *follower) truncated(s *series, f *file) {
	w.events.cut(f.path, max(0, f.size-f.offset))
	former := f.truncate()
	for i := range s.files {
		if s.files[i] == f {
			s.files = append(s.files[:i], append([]*file{former}, s.files[i:]...)...)
			break
		}
	}
	f.unsure, f.late = f.path != s.base, true
	f.ended = w.once // what is in it now was written after the start
	f.grownAt = w.now()
	w.dirty = true
}

// notReadable notes a compressed file that ends too early or is damaged. It is tried
// again when it has changed: it may still be written.
func (w *follower) notReadable(f *file, changed time.Time, err error) {
	if f.damaged == nil && w.now().Sub(changed) < copyTime && !w.once {
		return
	}
	if f.damaged == nil {
		w.events.damaged(f.path, err)
	}
	f.damaged = err
	f.checked.changed = changed
	f.ended = w.once
}

// lines makes records of the whole lines in data, and advances the file over them.
func (w *follower) lines(s *series, f *file, data []byte) (records []pipeline.Record, used int) {
	for used < len(data) && (f.limit < 0 || f.offset < f.limit) {
		rest := data[used:]
		length := bytes.IndexByte(rest, '\n')
		switch {
		case length == 0 && f.unended: // the break of a line that was emitted without
			f.unended = false
			f.advance(rest[:1])
			used++
			continue
		case (length < 0 || int64(length) > w.config.MaxLine) && int64(len(rest)) > w.config.MaxLine:
			length = int(w.config.MaxLine)
			records = append(records, w.piece(s, f, rest[:length], false))
			f.advance(rest[:length])
			used += length
			continue
		case length < 0:
			return records, used
		}
		records = append(records, w.record(s, f, rest[:length]))
		f.advance(rest[:length+1])
		used += length + 1
	}
	if f.limit >= 0 && f.offset >= f.limit {
		f.ended = true
	}
	return records, used
}

// record makes a record of a line that ends, or is the last piece of a long one.
func (w *follower) record(s *series, f *file, line []byte) pipeline.Record {
	if f.piece > 0 {
		r := w.piece(s, f, line, true)
		f.piece = 0
		return r
	}
	f.unended = false
	w.events.counts.lines.Add(1)
	return w.finish(s, f, line, w.parser.parse(bytes.TrimSuffix(line, []byte("\r"))))
}

// piece makes a record of a part of a line that is too long.
func (w *follower) piece(s *series, f *file, part []byte, last bool) pipeline.Record {
	f.piece++
	w.events.counts.pieces.Add(1)
	return w.finish(s, f, part, w.parser.piece(part, f.piece, last))
}

// finish gives the record its position and time.
func (w *follower) finish(s *series, f *file, line []byte, p parsed) pipeline.Record {
	if f.id == "" {
		f.name(s.base, line, s.generation)
	}
	if !p.whole {
		w.events.counts.unparsed.Add(1)
	}
	r := pipeline.Record{Value: p.value, Position: f.position(), Time: p.time}
	switch {
	case p.timed:
		f.time = p.time
	case f.time > 0:
		r.Time = f.time
		r.Headers = []pipeline.Header{{Key: pipeline.HeaderTimeFrom, Value: []byte("line before")}}
	default:
		r.Time = w.now().UnixMicro()
		r.Headers = []pipeline.Header{{Key: pipeline.HeaderTimeFrom, Value: []byte("reading")}}
	}
	return r
}

// idle decides what becomes of a file that has no whole line: rest is the begun one,
// nil if it has not changed since it was last looked at.
func (w *follower) idle(ctx context.Context, s *series, f *file, changed time.Time, rest []byte) (bool, error) {
	packed := isCompressed(f.path)
	if rest != nil && !packed {
		if at := f.offset + int64(len(rest)); at != f.looked {
			f.looked = at
			f.grownAt = w.now()
		}
		f.lookedAt = changed
	}
	if f.limit >= 0 && f.looked == f.offset {
		f.ended = true
		return false, nil
	}
	silent := w.now().Sub(f.grownAt)
	old := w.now().Sub(changed) > w.config.RotateWait
	finished := packed || !f.rotatedAt.IsZero() && (old || silent > w.config.RotateWait && w.now().Sub(f.rotatedAt) > w.config.RotateWait)
	if w.once && !f.rotatedAt.IsZero() {
		finished = true
	}
	lineOver := w.once && silent > lineWait
	if !finished && !lineOver {
		return false, nil
	}
	return w.finishFile(ctx, s, f, finished)
}

// finishFile emits the begun line of a file to which nothing will be added, and lets go
// of the file if it is finished.
func (w *follower) finishFile(ctx context.Context, s *series, f *file, finished bool) (bool, error) {
	st, err := f.content.stat()
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", f.path, err)
	}
	rest, _, err := w.read(f)
	if err != nil {
		return errors.Is(err, errTruncated), nil // the next step finds the same and says so
	}
	if f.unsure && len(rest) > 0 {
		return true, nil // it was written to just now, and is judged first
	}
	if bytes.IndexByte(rest, '\n') >= 0 {
		f.looked = -1 // it has grown just now
		return true, nil
	}
	var records []pipeline.Record
	if len(rest) > 0 {
		records = append(records, w.record(s, f, rest))
		f.advance(rest)
		f.unended = true
	}
	f.ended = w.once
	if finished {
		f.done, f.checked = true, st
		w.events.counts.finished.Add(1)
		f.close()
	}
	return true, w.emit(ctx, records)
}
