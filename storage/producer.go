package storage

import (
	"fmt"
	"math"
)

// producerWindow is how many of a producer's last batches are remembered: as many as clients may have in flight.
const producerWindow = 5

// producerKey names an idempotent producer in one partition.
type producerKey struct {
	id        int64
	partition uint32
}

// sentBatch is one remembered batch.
type sentBatch struct {
	first, last int32 // sequence numbers
	offset      int64 // base offset it got
}

// producer is what the journal knows of a producer in one partition. It follows from the stored batches alone, so all
// replicas agree on it and a new leader answers like the old one.
type producer struct {
	epoch  int16
	n      uint8 // used entries of window, oldest first
	window [producerWindow]sentBatch
	stamp  int64 // leader's time of the last batch, µs
	txn    int64 // first offset of the open transaction, -1 without one
	ended  int32 // the decision of the last marker; 0: none is known
}

// laterDecision says that decision a comes after b. They wrap.
func laterDecision(a, b int32) bool { return a-b > 0 }

// check decides on a new batch. A duplicate's original offset is returned with dup true; that of a marker is not known.
//
// The decisions are what keeps a transaction whole, whatever the network does with requests and whoever leads. A batch
// says as of which decision its transaction was open here, so a marker of it, which has a later one, is still to come: the
// batch goes before it or, if the marker is here already, is refused. A marker that was held back by the network, or
// that comes from a coordinator which does not know that it is none any more, has a decision that is in the log, or one
// before it, and ends nothing.
func (p *producer) check(key producerKey, h Header) (offset int64, dup bool, err error) {
	switch numbered := h.Decision != 0 && p.ended != 0; {
	case numbered && h.Control() && !laterDecision(h.Decision, p.ended):
		return -1, true, nil
	case numbered && !h.Control() && laterDecision(p.ended, h.Decision):
		return 0, false, fmt.Errorf("%w: producer %d, partition %d: the transaction has ended", ErrTxnState, key.id, key.partition)
	}
	switch {
	case h.ProducerEpoch < p.epoch:
		return 0, false, &EpochError{Producer: key.id, Partition: key.partition, Got: h.ProducerEpoch, Current: p.epoch}
	case h.Control():
		return 0, false, nil
	case h.ProducerEpoch > p.epoch:
		if h.BaseSequence != 0 {
			return 0, false, &SequenceError{Producer: key.id, Partition: key.partition, Got: h.BaseSequence, Want: 0}
		}
		return 0, false, nil
	}
	last := h.LastSequence()
	for _, b := range p.window[:p.n] {
		if b.first == h.BaseSequence && b.last == last {
			return b.offset, true, nil
		}
	}
	if p.n > 0 {
		if want := addSequence(p.window[p.n-1].last, 1); h.BaseSequence != want {
			return 0, false, &SequenceError{Producer: key.id, Partition: key.partition, Got: h.BaseSequence, Want: want}
		}
	} else if h.BaseSequence != 0 { // only a marker is known of this epoch
		return 0, false, &SequenceError{Producer: key.id, Partition: key.partition, Got: h.BaseSequence, Want: 0}
	}
	if p.txn >= 0 && !h.Transactional() {
		return 0, false, ErrTxnState
	}
	return 0, false, nil
}

// store notes a batch that got the offset base.
func (p *producer) store(h Header, base, stamp int64) {
	if h.ProducerEpoch != p.epoch {
		p.epoch, p.n = h.ProducerEpoch, 0
	}
	p.stamp = stamp
	if h.Control() {
		if h.Decision != 0 {
			p.ended = h.Decision
		}
		return
	}
	if p.n == producerWindow {
		copy(p.window[:], p.window[1:])
		p.n--
	}
	p.window[p.n] = sentBatch{first: h.BaseSequence, last: h.LastSequence(), offset: base}
	p.n++
}

const (
	// encodedProducer is the least size of an encoded producer.
	encodedProducer = 8 + 4 + 2 + 2 + 8 + 8
	// producerEnded, among the number of batches, says that ended follows.
	producerEnded = 1 << 15
)

func (p *producer) encode(b []byte, key producerKey) []byte {
	b = put32(put64(b, uint64(key.id)), key.partition)
	n := uint16(p.n)
	if p.ended != 0 {
		n |= producerEnded
	}
	b = put16(put16(b, uint16(p.epoch)), n)
	b = put64(put64(b, uint64(p.stamp)), uint64(p.txn))
	if p.ended != 0 {
		b = put32(b, uint32(p.ended))
	}
	for _, s := range p.window[:p.n] {
		b = put64(put32(put32(b, uint32(s.first)), uint32(s.last)), uint64(s.offset))
	}
	return b
}

func decodeProducer(d *decoder) (producerKey, *producer) {
	key := producerKey{id: int64(d.u64()), partition: d.u32()}
	p := &producer{epoch: int16(d.u16())}
	n := d.u16()
	p.stamp, p.txn = int64(d.u64()), int64(d.u64())
	if n&producerEnded != 0 {
		n &^= producerEnded
		p.ended = int32(d.u32())
	}
	if n > producerWindow {
		d.err = errShort
		return key, p
	}
	p.n = uint8(n)
	for i := range p.n {
		p.window[i] = sentBatch{first: int32(d.u32()), last: int32(d.u32()), offset: int64(d.u64())}
	}
	return key, p
}

// Aborted is a transaction of which readers of committed records must skip the batches: those of Producer from First
// up to the marker at Last.
type Aborted struct {
	Producer    int64
	First, Last int64
}

// closedTxn is a transaction whose marker is stored. Until the marker is committed it still bounds what is stable.
type closedTxn struct {
	first    int64
	position uint64 // of the marker's frame
}

// txns are the transactions of one partition.
type txns struct {
	open    map[int64]int64 // producer -> first offset
	closed  []closedTxn     // in the order of their markers
	aborted []Aborted       // rising Last
}

func (t *txns) begin(producer, first int64) {
	if t.open == nil {
		t.open = map[int64]int64{}
	}
	t.open[producer] = first
}

// end closes a producer's transaction by the marker with this offset, in the frame at position.
func (t *txns) end(e txnEvent, position, visible uint64) {
	delete(t.open, e.producer)
	keep := t.closed[:0]
	for _, c := range t.closed {
		if c.position >= visible {
			keep = append(keep, c)
		}
	}
	t.closed = append(keep, closedTxn{first: e.first, position: position})
	if !e.committed {
		t.aborted = append(t.aborted, Aborted{Producer: e.producer, First: e.first, Last: e.last})
	}
}

// note follows a batch's effect on its producer's transaction.
func (t *txns) note(e txnEvent, position, visible uint64) {
	switch e.kind {
	case txnBegan:
		t.begin(e.producer, e.first)
	case txnEnded:
		t.end(e, position, visible)
	}
}

// stable is the first offset that is not yet decided, if any is below end.
func (t *txns) stable(end int64, visible uint64) int64 {
	for _, first := range t.open {
		end = min(end, first)
	}
	for _, c := range t.closed {
		if c.position >= visible {
			end = min(end, c.first)
		}
	}
	return end
}

// txnEvent is what a batch did to its producer's transaction.
type txnEvent struct {
	kind        txnKind
	producer    int64
	first, last int64
	committed   bool
}

// addAborted appends the transaction if it was aborted.
func (e txnEvent) addAborted(list []abortedIn, partition uint32) []abortedIn {
	if e.kind != txnEnded || e.committed {
		return list
	}
	return append(list, abortedIn{partition, Aborted{Producer: e.producer, First: e.first, Last: e.last}})
}

type txnKind uint8

const (
	txnNone txnKind = iota
	txnBegan
	txnEnded
)

// maxLeaderTerm is the largest term that still fits a batch's leader epoch.
const maxLeaderTerm = math.MaxInt32
