package pipeline

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
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
	// note takes in the position of a record that the journal holds already.
	note(r *Record)
	// repeats reports whether a record with this position is to be left out, and takes
	// it in with the stamp it would get.
	repeats(position string, stamp int64) bool
	// covered says that the source will not go back before what it emitted so far, once
	// that is durable.
	covered()
	// pending returns what a checkpoint has to carry of the positions still expected.
	pending() pending
	// len is the number of positions held.
	len() int
}

// maxWindow bounds the positions that a window holds: about 200 MB.
const maxWindow = 2 << 20

// pending says how a restart finds the positions that are still expected: a few are
// carried by the checkpoint itself, for more the tail has to begin further back.
type pending struct {
	ids []positionID
	// floor are offsets of partitions at or above which the records of all expected
	// positions lie that ids does not list.
	floor map[int32]int64
}

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

func (w *seenWindow) note(r *Record) { w.add(idOf(r.Position), r.Stamp) }

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
func (w *seenWindow) pending() pending { return pending{} }

func (w *seenWindow) len() int { return len(w.set) }
