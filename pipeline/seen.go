package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"
)

// positionID stands for a position in 16 bytes of its SHA-256, which no two positions
// share. It is the same in every process, for a checkpoint may carry it.
type positionID [16]byte

// MarshalText implements encoding.TextMarshaler.
func (id positionID) MarshalText() ([]byte, error) {
	return base64.RawStdEncoding.AppendEncode(nil, id[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *positionID) UnmarshalText(text []byte) error {
	b, err := base64.RawStdEncoding.DecodeString(string(text))
	if err != nil || len(b) != len(id) {
		return fmt.Errorf("%.30q is no id of a position", text)
	}
	copy(id[:], b)
	return nil
}

func idOf(position string) (id positionID) {
	sum := sha256.Sum256([]byte(position))
	copy(id[:], sum[:])
	return id
}

// seen is the set of positions that a source may emit again and that are not to be
// appended twice. It is not safe for concurrent use.
type seen interface {
	// note takes in a position that the journal holds already.
	note(position string, stamp int64)
	// repeats reports whether a record with this position is to be left out, and takes
	// it in with the stamp it would get.
	repeats(position string, stamp int64) bool
	// covered says that the source will not go back before what it emitted so far, once
	// that is durable.
	covered()
	// pending returns the positions that are still expected, where there are no more
	// than a checkpoint can carry.
	pending() (ids []positionID, ok bool)
	// len is the number of positions held.
	len() int
}

// seenOnce holds what the journal had behind the source's checkpoint. The source emits
// that again exactly once, so each position leaves when it is met.
//
// A source that reads from several places (files) may emit again in another order. So
// a checkpoint that is taken while positions are still expected has to carry them: the
// tail behind it does not hold them all.
type seenOnce struct {
	set map[positionID]struct{}
	// met are the positions that came again since the last place at which the source
	// can go on; if it has to go on there, they come once more.
	met []positionID
	// expected is until when positions are expected; what has not come again by then
	// never will (a file that was deleted meanwhile).
	expected time.Time
}

// expectRepeats is how long after its start a source may emit again for the first time
// what the journal already holds.
const expectRepeats = 10 * time.Minute

// maxPending is how many positions a checkpoint carries: 2 KiB.
const maxPending = 128

func newSeenOnce(pending []positionID) *seenOnce {
	s := &seenOnce{set: map[positionID]struct{}{}, expected: time.Now().Add(expectRepeats)}
	for _, id := range pending {
		s.set[id] = struct{}{}
	}
	return s
}

func (s *seenOnce) note(position string, _ int64) { s.set[idOf(position)] = struct{}{} }

func (s *seenOnce) repeats(position string, _ int64) bool {
	if len(s.set) == 0 {
		return false
	}
	id := idOf(position)
	if _, ok := s.set[id]; !ok {
		return false
	}
	delete(s.set, id)
	s.met = append(s.met, id)
	return true
}

func (s *seenOnce) covered() { s.met = nil }

func (s *seenOnce) pending() (ids []positionID, ok bool) {
	if len(s.set) > 0 && time.Now().After(s.expected) {
		clear(s.set)
	}
	if len(s.set)+len(s.met) > maxPending {
		return nil, false
	}
	for id := range s.set {
		ids = append(ids, id)
	}
	ids = append(ids, s.met...)
	slices.SortFunc(ids, func(a, b positionID) int { return bytes.Compare(a[:], b[:]) })
	return ids, true
}

func (s *seenOnce) len() int { return len(s.set) }

// maxWindow bounds the positions that a window holds: about 200 MB.
const maxWindow = 2 << 20

// seenWindow holds the positions of a stretch of append time (see Deduper).
type seenWindow struct {
	width int64 // µs
	set   map[positionID]int64
	queue []windowEntry // in the order of arrival; head is the first still in
	head  int
	// shortened counts the positions that left before their time, for want of room.
	shortened int64
}

type windowEntry struct {
	id    positionID
	stamp int64
}

func newSeenWindow(width int64) *seenWindow {
	return &seenWindow{width: width, set: map[positionID]int64{}}
}

func (w *seenWindow) note(position string, stamp int64) { w.add(idOf(position), stamp) }

func (w *seenWindow) repeats(position string, stamp int64) bool {
	w.expire(stamp)
	id := idOf(position)
	if _, ok := w.set[id]; ok {
		return true
	}
	w.add(id, stamp)
	return false
}

func (w *seenWindow) add(id positionID, stamp int64) {
	if len(w.set) >= maxWindow {
		w.shortened++
		w.drop()
	}
	w.set[id] = stamp
	w.queue = append(w.queue, windowEntry{id: id, stamp: stamp})
}

// expire forgets what is older than the window.
func (w *seenWindow) expire(stamp int64) {
	for w.head < len(w.queue) && w.queue[w.head].stamp < stamp-w.width {
		w.drop()
	}
	if w.head > 1024 && w.head > len(w.queue)/2 {
		n := copy(w.queue, w.queue[w.head:])
		w.queue, w.head = w.queue[:n], 0
	}
}

// drop forgets the first entry, unless the position has come again since.
func (w *seenWindow) drop() {
	e := w.queue[w.head]
	w.head++
	if w.set[e.id] == e.stamp {
		delete(w.set, e.id)
	}
}

func (w *seenWindow) covered() {}

// pending is empty: the window is read back from the stream, however old the checkpoint.
func (w *seenWindow) pending() ([]positionID, bool) { return nil, true }

func (w *seenWindow) len() int { return len(w.set) }
