package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/hashicorp/raft"
)

var (
	_ raft.LogStore          = (*Journal)(nil)
	_ raft.MonotonicLogStore = (*Journal)(nil)
	_ raft.StableStore       = (*Journal)(nil)
)

// IsMonotonic implements raft.MonotonicLogStore: entries without gaps, so raft clears the log before it goes on behind
// a snapshot.
func (j *Journal) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (j *Journal) FirstIndex() (uint64, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.index.firstIndex(), nil
}

// LastIndex implements raft.LogStore.
func (j *Journal) LastIndex() (uint64, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.index.lastIndex(), nil
}

func (x *index) firstIndex() uint64 {
	for _, s := range x.segs {
		if len(s.entries) > 0 {
			return max(s.first, x.first)
		}
	}
	return 0
}

func (x *index) lastIndex() uint64 {
	for _, s := range slices.Backward(x.segs) {
		if len(s.entries) > 0 {
			return s.last()
		}
	}
	return 0
}

// find returns the segment and entry number of a raft index.
func (x *index) find(i uint64) (*segment, int, bool) {
	n := sort.Search(len(x.segs), func(k int) bool {
		s := x.segs[k]
		return len(s.entries) == 0 || s.first > i // only the last segment can be empty
	})
	if n == 0 || i > x.segs[n-1].last() {
		return nil, 0, false
	}
	return x.segs[n-1], int(i - x.segs[n-1].first), true
}

// entryEnd is the journal position behind a raft entry.
func (x *index) entryEnd(i uint64) (uint64, bool) {
	seg, n, ok := x.find(i)
	if !ok {
		return 0, false
	}
	return seg.base + uint64(seg.entryEnd(n)), true
}

// GetLog implements raft.LogStore. Of entries that hold batches it fills index, term and type only; the transport sends
// frames as they are on disk. The entry before the first one is known by index and term, so that raft can link to it.
func (j *Journal) GetLog(i uint64, log *raft.Log) error {
	j.mu.RLock()
	if front := &j.index.front; i == front.index && i != 0 && !j.o.Commands {
		*log = raft.Log{Index: i, Term: front.term, Type: raft.LogNoop}
		j.mu.RUnlock()
		return nil
	}
	seg, n, ok := j.index.find(i)
	if !ok || i < j.index.first {
		j.mu.RUnlock()
		return raft.ErrLogNotFound // unwrapped: raft compares
	}
	e := seg.entries[n]
	end := seg.entryEnd(n)
	*log = raft.Log{Index: i, Term: uint64(e.term), Type: e.typ.raft()}
	if e.typ != frameConfig && e.typ != frameCommand {
		j.mu.RUnlock()
		return nil
	}
	seg.acquire()
	j.mu.RUnlock()
	defer seg.release()
	frame, err := readFrame(seg, int64(e.rel), end)
	if err != nil {
		return err
	}
	h, _ := parseFrameHeader(frame, seg.base+uint64(e.rel))
	log.Data = frame[frameHeaderBytes : frameHeaderBytes+int(h.count)]
	log.AppendedAt = time.UnixMicro(h.stamp)
	return nil
}

// Frame returns the whole frame of a raft entry, checked and without its note: what a follower gets in the entry's
// Extensions. The error is
// raft.ErrLogNotFound, a *DamageError, or that of the disk.
func (j *Journal) Frame(i uint64) ([]byte, error) {
	j.mu.RLock()
	seg, n, ok := j.index.find(i)
	if !ok {
		j.mu.RUnlock()
		return nil, raft.ErrLogNotFound
	}
	rel, end := int64(seg.entries[n].rel), seg.entryEnd(n)
	seg.acquire()
	j.mu.RUnlock()
	defer seg.release()
	return readFrame(seg, rel, end)
}

// readFrame reads and checks the frame at the file offsets [rel, end).
func readFrame(seg *segment, rel, end int64) ([]byte, error) {
	frame := make([]byte, end-rel)
	if err := seg.read(frame, rel); err != nil {
		return nil, err
	}
	h, ok := parseFrameHeader(frame, seg.base+uint64(rel))
	if !ok || int64(h.length) != end-rel || !h.checkDirectory(frame) {
		return nil, seg.damage(rel, end, "frame header is damaged")
	}
	if reason := h.checkPayload(frame); reason != "" {
		return nil, seg.damage(rel, end, reason)
	}
	clearNote(frame)
	return frame, nil
}

func (t frameType) raft() raft.LogType {
	switch t {
	case frameNoop:
		return raft.LogNoop
	case frameConfig:
		return raft.LogConfiguration
	case frameBarrier:
		return raft.LogBarrier
	}
	return raft.LogCommand
}

func frameTypeOf(t raft.LogType) (frameType, bool) {
	switch t {
	case raft.LogNoop:
		return frameNoop, true
	case raft.LogConfiguration:
		return frameConfig, true
	case raft.LogBarrier:
		return frameBarrier, true
	case raft.LogCommand:
		return frameCommand, true
	}
	return 0, false
}

// Set implements raft.StableStore.
func (j *Journal) Set(key, value []byte) error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	return j.setValue(string(key), value)
}

func (j *Journal) setValue(key string, value []byte) error {
	if err := j.writable(); err != nil {
		return err
	}
	if old, ok := j.start.values[key]; ok && bytes.Equal(old, value) {
		return nil
	}
	j.mu.Lock() // readers of values take mu
	j.start.values = maps.Clone(j.start.values)
	j.start.values[key] = bytes.Clone(value)
	j.mu.Unlock()
	if err := j.start.write(); err != nil {
		return j.fail(err)
	}
	return nil
}

// Get implements raft.StableStore.
func (j *Journal) Get(key []byte) ([]byte, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return bytes.Clone(j.start.values[string(key)]), nil
}

// SetUint64 implements raft.StableStore.
func (j *Journal) SetUint64(key []byte, value uint64) error {
	return j.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (j *Journal) GetUint64(key []byte) (uint64, error) {
	b, err := j.Get(key)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("value of %q has %d bytes, want 8", key, len(b))
	}
	return binary.LittleEndian.Uint64(b), nil
}
