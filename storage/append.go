package storage

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
)

// appender is the writer's working memory, used again for each StoreLogs. Guarded by Journal.wmu.
type appender struct {
	heads   []byte // frame headers, directories and padding; buffers point into it
	buffers [][]byte
	frames  []builtFrame
	staged  []stagedBatch
	aborted []abortedIn // transactions aborted in the current segment
}

// zeroPage is what is added up to the end of a page. Nobody writes to it.
var zeroPage [vfs.PageBytes]byte

// builtFrame is a frame that is ready to be written.
type builtFrame struct {
	header frameHeader
	staged int // end of its batches
}

// stagedBatch is a batch that becomes readable once its frame is written.
type stagedBatch struct {
	partition    uint32
	at           uint32 // offset in its frame
	length       uint32
	offset, next int64
	maxTimestamp int64
	event        txnEvent
}

func (a *appender) clear() {
	clear(a.buffers) // they hold the producers' memory
	a.heads, a.buffers, a.frames, a.staged = a.heads[:0], a.buffers[:0], a.frames[:0], a.staged[:0]
}

// head returns n zero bytes that stay where they are.
func (a *appender) head(n int) []byte {
	if len(a.heads)+n > cap(a.heads) {
		a.heads = make([]byte, 0, max(2*cap(a.heads), n, 512)) // buffers keep the old array alive; most journals need little
	}
	a.heads = a.heads[:len(a.heads)+n]
	b := a.heads[len(a.heads)-n:]
	clear(b)
	return b[:n:n]
}

// StoreLog implements raft.LogStore.
func (j *Journal) StoreLog(log *raft.Log) error { return j.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. On the leader the entries are proposals made by Propose, and here their batches
// get their offsets; on a follower each brings its frame in Extensions, which is checked and stored as it is. Any error
// but those of [Refused] and ErrDamagedFrame makes the journal read-only.
//
// Guarantees 1 and 2: what returns from here is stable (durable) and in its final order.
func (j *Journal) StoreLogs(logs []*raft.Log) error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return err
	}
	if err := checkReceived(logs); err != nil {
		if j.justCut {
			return j.fail(err)
		}
		return err // nothing was done yet
	}
	if err := j.makeRoom(logs); err != nil {
		if j.justCut || !Refused(err) { // after a cut raft 1.8.0 would go on with the last index from before
			return j.fail(err)
		}
		return err // nothing was done yet
	}
	at := j.tail.pos
	if err := j.storeLogs(logs); err != nil {
		if Refused(err) && !j.justCut && j.tail.pos == at {
			return err // the next segment was not begun, and nothing was built for it
		}
		return j.fail(err)
	}
	j.justCut = false
	return nil
}

// makeRoom allocates what was not reserved: raft's own entries, and on a follower all. Raft's own entries are small and
// may use the headroom, which is what it is for.
func (j *Journal) makeRoom(logs []*raft.Log) error {
	var n int64
	for _, l := range logs {
		if l.Type != raft.LogCommand || len(l.Extensions) > 0 {
			n += j.frameBound(l)
		}
	}
	if n == 0 {
		return nil
	}
	s := &j.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+s.reserved+n <= s.alloc || s.spare != nil && s.reserved+n <= s.spareLen {
		return nil
	}
	return j.ensure(n)
}

func (j *Journal) storeLogs(logs []*raft.Log) error {
	a, at := &j.app, j.tail.pos
	a.clear()
	defer a.clear()
	for _, l := range logs {
		// Rolling comes before building: the sealed segment's index holds the state exactly at its end.
		if n := j.frameBound(l); !j.fits(n) {
			if err := j.writeFrames(); err != nil {
				return err
			}
			if err := j.rollOr(n, at); err != nil {
				return err
			}
		}
		if err := j.buildFrame(l); err != nil {
			return err
		}
	}
	if err := j.writeFrames(); err != nil {
		return err
	}
	if hasConfiguration(logs) {
		if err := j.syncTail(); err != nil {
			return err
		}
		j.countVoters() // not before: all that is shown is on stable storage now
		return nil
	}
	if j.o.Mode == Durable {
		return j.syncTail()
	}
	j.wakeFlusher()
	return nil
}

// frameBound is the most bytes the entry's frame can have. Duplicates that are left out make it smaller.
func (j *Journal) frameBound(l *raft.Log) int64 {
	if len(l.Extensions) > 0 {
		return int64(len(l.Extensions))
	}
	if p := j.proposals.get(l); p != nil {
		return frameBytes(len(p.Batches), p.bytes)
	}
	return frameBytes(0, int64(len(l.Data)))
}

// fits says whether n more bytes end within what is allocated of the current segment.
func (j *Journal) fits(n int64) bool {
	used := int64(j.tail.pos - j.current().base)
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	return used+n <= j.space.alloc
}

// writeFrames writes the built frames at the end of the current segment and makes them known to readers.
func (j *Journal) writeFrames() error {
	a := &j.app
	if len(a.frames) == 0 {
		return nil
	}
	seg := j.current()
	off := int64(a.frames[0].header.position - seg.base)
	j.padPage(int64(j.tail.pos - seg.base))
	if _, err := seg.file.WritevAt(a.buffers, off); err != nil {
		return fmt.Errorf("writing %s: %w", seg.path, err)
	}
	j.publish(seg)
	a.clear()
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	j.space.used = seg.size
	j.wakePreparer()
	return nil
}

// padPage adds zeroes to what is written, from its end at the file offset end up to the end of a page. A page that is not
// written as a whole has to be read first if the file had an earlier life that is not in memory any more.
func (j *Journal) padPage(end int64) {
	n := -end & (vfs.PageBytes - 1)
	j.space.mu.Lock()
	defer j.space.mu.Unlock()
	if end+n <= j.space.alloc {
		j.app.buffers = append(j.app.buffers, zeroPage[:n])
	}
}

// current is the segment that is written to. The caller holds wmu.
func (j *Journal) current() *segment { return j.index.segs[len(j.index.segs)-1] }

// publish adds written frames to the index.
func (j *Journal) publish(seg *segment) {
	a, staged := &j.app, 0
	visible := j.visible()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range a.frames {
		f := &a.frames[i]
		rel := uint32(f.header.position - seg.base)
		for ; staged < f.staged; staged++ {
			b := &a.staged[staged]
			p := j.index.parts[b.partition]
			if p == nil {
				p = &partition{}
				j.index.parts[b.partition] = p
			}
			p.add(seg, loc{offset: b.offset, rel: rel + b.at, length: b.length}, b.next, b.maxTimestamp)
			if b.event.kind != txnNone {
				p.txns.note(b.event, f.header.position, visible)
				a.aborted = b.event.addAborted(a.aborted, b.partition)
			}
		}
		seg.add(&f.header)
		j.noteTrim(&f.header)
	}
	j.index.end = seg.end()
}
