package storage

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// producerExpiry is how long an idle producer is remembered, by the leader's clock in the frames.
const producerExpiry = 24 * time.Hour

// tail is everything the next frame depends on: where it goes, what it links to, which offsets its batches get. It is
// a pure value that frames are added to; the leader, followers and recovery all add them by the same code. Written
// into the start file it describes the front of the log, in a sealed index the end of that segment, and it is all that
// a new replica needs in place of what is no longer there.
type tail struct {
	pos         uint64 // where the next frame starts
	index, term uint64 // of the last frame
	crc         uint32 // of the last frame
	stamp       int64  // of the last frame, µs; stamps never go back
	configIndex uint64 // the last configuration and its raft index
	config      []byte
	next        map[uint32]int64 // next offset of each partition
	producers   map[producerKey]*producer
}

func newTail() *tail {
	return &tail{next: map[uint32]int64{}, producers: map[producerKey]*producer{}}
}

// clone is a copy that shares nothing that changes.
func (t *tail) clone() *tail {
	c := *t
	c.next = maps.Clone(t.next)
	c.producers = make(map[producerKey]*producer, len(t.producers))
	for k, p := range t.producers {
		copied := *p
		c.producers[k] = &copied
	}
	return &c
}

// links says why the frame h cannot follow, or "".
func (t *tail) links(h *frameHeader) string {
	switch {
	case h.prevCRC != t.crc:
		return "it does not link to the frame before it"
	case t.index != 0 && h.index != t.index+1:
		return fmt.Sprintf("raft index %d follows %d", h.index, t.index)
	case h.term > maxLeaderTerm:
		return fmt.Sprintf("term %d is out of range", h.term)
	}
	return ""
}

// before says whether a frame can be one that once came later.
func (t *tail) before(h *frameHeader) bool {
	return h.position > t.pos && h.index > t.index && h.term >= t.term && h.stamp >= t.stamp
}

// addFrame moves the tail behind the frame h; its batches are added by addBatch before.
func (t *tail) addFrame(h *frameHeader, payload []byte) {
	t.pos = h.position + uint64(h.length)
	t.index, t.term, t.crc, t.stamp = h.index, h.term, h.crc, h.stamp
	if h.typ == frameConfig {
		t.configIndex, t.config = h.index, slices.Clone(payload)
	}
}

// check decides whether a batch may be stored.
func (t *tail) check(b *Batch) (offset int64, dup bool, err error) {
	h := b.header
	if !h.Idempotent() {
		return 0, false, nil
	}
	key := producerKey{h.ProducerID, b.Partition}
	switch p := t.producers[key]; {
	case p != nil:
		return p.check(key, h)
	case b.FromZero && h.BaseSequence != 0:
		return 0, false, &SequenceError{Producer: key.id, Partition: key.partition, Got: h.BaseSequence, Want: 0}
	}
	return 0, false, nil // an unknown producer may start anywhere: its past may be what retention removed
}

// addBatch notes a stored batch. data is needed of control batches only.
func (t *tail) addBatch(partition uint32, h Header, base, stamp int64, data []byte) txnEvent {
	t.next[partition] = base + int64(h.LastDelta) + 1
	if !h.Idempotent() {
		return txnEvent{}
	}
	key := producerKey{h.ProducerID, partition}
	p := t.producers[key]
	if p == nil {
		t.makeRoom()
		p = &producer{epoch: h.ProducerEpoch, txn: -1}
		t.producers[key] = p
	}
	p.store(h, base, stamp)
	switch {
	case h.Control() && p.txn >= 0:
		e := txnEvent{kind: txnEnded, producer: h.ProducerID, first: p.txn, last: base, committed: markerCommits(data)}
		p.txn = -1
		return e
	case h.Transactional() && !h.Control() && p.txn < 0:
		p.txn = base
		return txnEvent{kind: txnBegan, producer: h.ProducerID, first: base}
	}
	return txnEvent{}
}

// expire forgets producers that were idle for long. It is called where a segment is sealed.
func (t *tail) expire() {
	for k, p := range t.producers {
		if p.txn < 0 && time.Duration(t.stamp-p.stamp)*time.Microsecond > producerExpiry {
			delete(t.producers, k)
		}
	}
}

// encode appends the tail to b, in a fixed order, so that equal tails have equal bytes.
func (t *tail) encode(b []byte) []byte {
	b = put64(put64(put64(b, t.pos), t.index), t.term)
	b = put64(put32(b, t.crc), uint64(t.stamp))
	b = putBytes(put64(b, t.configIndex), t.config)
	b = put32(b, uint32(len(t.next)))
	for _, p := range slices.Sorted(maps.Keys(t.next)) {
		b = put64(put32(b, p), uint64(t.next[p]))
	}
	b = put32(b, uint32(len(t.producers)))
	keys := slices.SortedFunc(maps.Keys(t.producers), func(x, y producerKey) int {
		if x.id != y.id {
			return int(min(1, max(-1, x.id-y.id)))
		}
		return int(x.partition) - int(y.partition)
	})
	for _, k := range keys {
		b = t.producers[k].encode(b, k)
	}
	return b
}

func decodeTail(d *decoder) (*tail, error) {
	t := newTail()
	t.pos, t.index, t.term = d.u64(), d.u64(), d.u64()
	t.crc, t.stamp = d.u32(), int64(d.u64())
	t.configIndex, t.config = d.u64(), slices.Clone(d.bytes())
	for range d.count(12) {
		p := d.u32()
		t.next[p] = int64(d.u64())
	}
	for range d.count(encodedProducer) {
		k, p := decodeProducer(d)
		t.producers[k] = p
	}
	return t, d.err
}
