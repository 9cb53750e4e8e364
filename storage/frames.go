package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// ErrDamagedFrame refuses a frame that another replica sent and that fails its own checksums, before anything of it was
// done. What was damaged is the way here or the sender's copy, not this journal.
var ErrDamagedFrame = errors.New("received frame is damaged")

// Frames are the frames of consecutive raft entries as they lie on disk, to be sent to another replica.
type Frames struct {
	// Pieces are the frames' bytes, one stretch of a segment each, to be sent one after the other. They may be used
	// until Release and must not be changed: mostly they are the file's own pages, see [Guard].
	Pieces [][]byte
	// Bytes is the length of all pieces, Count the number of entries they hold.
	Bytes, Count int

	held Chunk
}

// Release gives the memory back; the pieces must not be used any more. It may be called again.
func (f *Frames) Release() {
	f.held.Release()
	f.Pieces = nil
}

// Frames returns the frames of logs, which are consecutive entries as GetLog gave them: at least the first, and as many
// as maxBytes allows. Nothing is checked but that the log still has these entries: the replica that gets the frames
// checks them. It fails with raft.ErrLogNotFound if the first one's frame is not there, which is so for the entry before
// the log's front too, and otherwise if the log was cut and has another entry in its place.
func (j *Journal) Frames(logs []*raft.Log, maxBytes int) (*Frames, error) {
	f := &Frames{held: Chunk{pool: &j.buffers}}
	for f.Count < len(logs) && (f.Count == 0 || f.Bytes < maxBytes) {
		n, err := j.addFrames(f, logs[f.Count:], maxBytes)
		if err != nil {
			f.Release()
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	return f, nil
}

// addFrames adds the frames that lie in one segment.
func (j *Journal) addFrames(f *Frames, logs []*raft.Log, maxBytes int) (int, error) {
	j.mu.RLock()
	seg, from, ok := j.index.find(logs[0].Index)
	if !ok {
		j.mu.RUnlock()
		return 0, raft.ErrLogNotFound
	}
	at := int64(seg.entries[from].rel)
	end, n := at, 0
	for n < len(logs) && from+n < len(seg.entries) {
		e := seg.entries[from+n]
		if l := logs[n]; l.Index != logs[0].Index+uint64(n) || l.Term != uint64(e.term) {
			j.mu.RUnlock()
			return 0, fmt.Errorf("entry %d is of term %d, not %d: the log was cut", l.Index, e.term, l.Term)
		}
		next := seg.entryEnd(from + n)
		if f.Count+n > 0 && f.Bytes+int(next-at) > maxBytes {
			break
		}
		end = next
		n++
	}
	size := seg.size
	seg.acquire()
	j.mu.RUnlock()
	if n == 0 {
		seg.release()
		return 0, nil
	}
	if err := j.holdFrames(f, seg, at, end, size); err != nil {
		return 0, err
	}
	f.Count += n
	return n, nil
}

// holdFrames adds a stretch of a segment and takes the caller's reference to it over.
func (j *Journal) holdFrames(f *Frames, seg *segment, at, end, size int64) error {
	n := end - at
	v := j.viewOf(seg, end)
	if v == nil {
		defer seg.release()
		buf := f.held.buffer(int(n))
		if err := seg.read(buf, at); err != nil {
			return err
		}
		f.Pieces, f.Bytes = append(f.Pieces, buf), f.Bytes+int(n)
		return nil
	}
	j.cache.add(seg) // so that not every segment stays mapped
	f.held.runs = append(f.held.runs, heldRun{seg, v})
	list := j.pieces.of([]loc{{rel: uint32(at), length: uint32(n)}})
	defer j.pieces.put(list)
	scanned, cold := v.want(*list, size)
	if scanned {
		j.readAhead(seg, v, end, size)
	}
	v.await(*list, cold)
	f.Pieces, f.Bytes = append(f.Pieces, v.mapping.Bytes[at:end:end]), f.Bytes+int(n)
	return nil
}

// Received takes apart what Frames gave on another replica, for StoreLogs. The memory of the entries is buf's. A journal
// of batches stores the frames themselves, which are in Extensions; here only what is needed to stay within buf is
// checked, and StoreLogs checks the rest. A log of commands begins anew behind each snapshot, so its frames are its own:
// it gets the commands, out of frames that are checked here.
func (j *Journal) Received(buf []byte, first uint64) ([]*raft.Log, error) {
	var all []*raft.Log
	for len(buf) > 0 {
		if len(buf) < frameHeaderBytes {
			return nil, fmt.Errorf("%w: %d bytes are less than a header", ErrDamagedFrame, len(buf))
		}
		h, ok := parseFrameHeader(buf, binary.LittleEndian.Uint64(buf[32:]))
		if !ok || int64(h.length) > int64(len(buf)) || h.index != first+uint64(len(all)) {
			return nil, fmt.Errorf("%w: entry %d has no whole frame", ErrDamagedFrame, first+uint64(len(all)))
		}
		l := &raft.Log{Index: h.index, Term: h.term, Type: h.typ.raft(), Extensions: buf[:h.length:h.length]}
		clearNote(buf) // of the log that it comes from
		if j.o.Commands {
			if err := checkReceived([]*raft.Log{l}); err != nil {
				return nil, err
			}
			if h.typ == frameBatches {
				return nil, fmt.Errorf("%w: entry %d has batches and no command", ErrDamagedFrame, h.index)
			}
			l.Data, l.Extensions = buf[frameHeaderBytes:frameHeaderBytes+h.count:frameHeaderBytes+h.count], nil
		}
		if h.typ == frameConfig { // raft looks into it
			l.Data = bytes.Clone(buf[frameHeaderBytes : frameHeaderBytes+h.count])
		}
		all, buf = append(all, l), buf[h.length:]
	}
	return all, nil
}

// checkReceived checks the frames among logs by their own checksums.
func checkReceived(logs []*raft.Log) error {
	for _, l := range logs {
		frame := l.Extensions
		if len(frame) == 0 {
			continue
		}
		if len(frame) < frameHeaderBytes {
			return fmt.Errorf("%w: entry %d has %d bytes", ErrDamagedFrame, l.Index, len(frame))
		}
		h, ok := parseFrameHeader(frame, binary.LittleEndian.Uint64(frame[32:]))
		if !ok || int(h.length) != len(frame) || !h.checkDirectory(frame) {
			return fmt.Errorf("%w: header of entry %d", ErrDamagedFrame, l.Index)
		}
		if reason := h.checkPayload(frame); reason != "" {
			return fmt.Errorf("%w: entry %d: %s", ErrDamagedFrame, l.Index, reason)
		}
	}
	return nil
}
