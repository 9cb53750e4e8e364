package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/hashicorp/raft"
)

// End is a place between two frames of the log.
type End struct {
	Index    uint64 // raft's, of the frame before it; 0: there is none
	Position uint64 // of the frame behind it
}

// DivergedError says that another log's frames do not follow this one's, although both should be the same: one of them
// has lost or changed what was committed. Nothing was done.
type DivergedError struct {
	At     End
	Reason string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("the other log goes on differently behind raft entry %d at journal position %d: %s", e.At.Index, e.At.Position, e.Reason)
}

// End is where the log ends, be it committed or not.
func (j *Journal) End() End {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.index.endAt(j.index.end)
}

// Visible is up to where the log is committed and may be shown, as far as is known here.
func (j *Journal) Visible() End {
	visible := j.visible()
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.index.endAt(visible)
}

// Records is the number of records that were ever appended below Visible, to all partitions together: the sum of their ends.
func (j *Journal) Records() (n int64) {
	visible := j.visible()
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, p := range j.index.parts {
		n += p.visibleEnd(visible)
	}
	return n
}

// LastTerm is the raft term of the last frame, and 0 without one: no batch has a higher leader epoch.
func (j *Journal) LastTerm() uint64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for i := len(j.index.segs) - 1; i >= 0; i-- {
		if e := j.index.segs[i].entries; len(e) > 0 {
			return uint64(e[len(e)-1].term)
		}
	}
	return j.index.front.term
}

// endAt names the end of the frame that ends at a position, or the front.
func (x *index) endAt(position uint64) End {
	n := sort.Search(len(x.segs), func(i int) bool { return x.segs[i].base >= position })
	if n == 0 {
		return End{x.front.index, x.front.pos}
	}
	seg := x.segs[n-1]
	k := sort.Search(len(seg.entries), func(i int) bool { return seg.base+uint64(seg.entries[i].rel) >= position })
	return End{seg.first + uint64(k) - 1, position}
}

// FramesAfter returns the frames behind a raft entry that are committed, as Frames does: about maxBytes of them, but at
// least one if there is any. Without one the result is nil. The error is raft.ErrLogNotFound if the first of them is not
// there any more; Front says from where on there is something.
func (j *Journal) FramesAfter(after uint64, maxBytes int) (*Frames, error) {
	visible := j.visible()
	f := &Frames{held: Chunk{pool: &j.buffers}}
	for f.Count == 0 || f.Bytes < maxBytes {
		n, err := j.addVisible(f, after+1+uint64(f.Count), maxBytes, visible)
		if err != nil {
			f.Release()
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	if f.Count == 0 {
		return nil, nil
	}
	return f, nil
}

// addVisible adds the frames below a position that lie in one segment.
func (j *Journal) addVisible(f *Frames, first uint64, maxBytes int, visible uint64) (int, error) {
	j.mu.RLock()
	seg, from, ok := j.index.find(first)
	if !ok {
		gone := first <= j.index.front.index
		closed := j.index.segs == nil
		j.mu.RUnlock()
		switch {
		case closed:
			return 0, ErrClosed
		case gone:
			return 0, raft.ErrLogNotFound
		}
		return 0, nil
	}
	at := int64(seg.entries[from].rel)
	end, n := at, 0
	for from+n < len(seg.entries) {
		next := seg.entryEnd(from + n)
		if seg.base+uint64(next) > visible || f.Count+n > 0 && f.Bytes+int(next-at) > maxBytes {
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

// LastOf is the raft index of the last of received frames, 0 if they are no whole frames.
func LastOf(frames []byte) (last uint64) {
	for len(frames) >= frameHeaderBytes {
		n := binary.LittleEndian.Uint32(frames[4:])
		last = binary.LittleEndian.Uint64(frames[16:])
		if n < frameHeaderBytes || uint64(n) > uint64(len(frames)) {
			return 0
		}
		frames = frames[n:]
	}
	if len(frames) > 0 {
		return 0
	}
	return last
}

// StoreReceived stores frames that FramesAfter gave on another replica, as they are, in a log that raft does not write. The
// memory is the caller's again when it returns. ErrDamagedFrame, those of [Refused] and a *DivergedError say that
// nothing was done; every other error makes the journal read-only.
func (j *Journal) StoreReceived(frames []byte) error {
	end := j.End()
	logs, err := j.Received(frames, end.Index+1)
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return nil
	}
	if err := checkReceived(logs[:1]); err != nil {
		return err
	}
	if reason := j.parts(frames); reason != "" {
		return &DivergedError{At: end, Reason: reason}
	}
	return j.StoreLogs(logs)
}

// parts says why a frame that is whole cannot follow the log, or "".
func (j *Journal) parts(frame []byte) string {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	h, ok := parseFrameHeader(frame, j.tail.pos)
	if !ok {
		return fmt.Sprintf("its next frame is at position %d", binary.LittleEndian.Uint64(frame[32:]))
	}
	return j.tail.links(&h)
}

// NotifyEnd is Notify for whatever is committed, in any partition or none.
func (j *Journal) NotifyEnd(ch chan<- struct{}) (stop func()) {
	return j.watch(&watcher{ch: ch, all: true})
}

// WaitVisible waits until all before a position may be shown here.
func (j *Journal) WaitVisible(ctx context.Context, position uint64) error {
	if j.visible() >= position {
		return nil
	}
	grown := make(chan struct{}, 1)
	defer j.NotifyEnd(grown)()
	for j.visible() < position {
		select {
		case <-grown:
		case <-j.failedCh:
			return j.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
