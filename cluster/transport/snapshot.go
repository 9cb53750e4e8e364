package transport

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// snapshotChunk is how much of a snapshot goes in a frame, snapshotWindow how much of it the peer has not read.
	snapshotChunk  = 256 << 10
	snapshotWindow = 2 << 20
	// restoreTimes is by how much longer than for an answer a snapshot may stand still: it is being written or restored.
	restoreTimes = 30
)

// sendSnapshot sends a snapshot as fast as the peer reads it, and waits until it is restored there.
func (g *Group) sendSnapshot(s *session, to raft.ServerID, args *raft.InstallSnapshotRequest, data io.Reader) (answer, error) {
	if len(args.Configuration) > maxConfiguration || args.Size < 0 {
		return answer{}, fmt.Errorf("snapshot of %d bytes with a configuration of %d", args.Size, len(args.Configuration))
	}
	patience := restoreTimes * g.t.o.Timeout
	w := newWaiter()
	c := &credit{room: snapshotWindow, more: make(chan struct{}, 1)}
	early := make(chan struct{})
	seq, err := s.open(&call{
		done:  func(a answer, err error) { w.done(a, err); close(early) },
		taken: c.give,
	}, patience)
	if err != nil {
		return answer{}, err
	}
	if err := g.streamSnapshot(s, to, seq, args, data, c, early, patience); err != nil {
		// Raft does nothing there until it knows that no more comes. If this cannot be said, the connection has ended.
		_ = s.bulk.push(&outgoing{lane: g.id, header: header{kind: kindData, seq: seq}})
		s.finish(seq, answer{}, err)
	}
	return w.wait()
}

// credit is how much the peer has room for.
type credit struct {
	mu   sync.Mutex // guards room
	room int
	more chan struct{}
}

// give notes that the peer has read n bytes. A peer that read more than it got gains nothing.
func (c *credit) give(n int) {
	c.mu.Lock()
	c.room = min(c.room+max(n, 0), snapshotWindow)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// take uses n bytes, or says that there are fewer.
func (c *credit) take(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room < n {
		return false
	}
	c.room -= n
	return true
}

func (g *Group) streamSnapshot(s *session, to raft.ServerID, seq uint64, args *raft.InstallSnapshotRequest, data io.Reader, c *credit, early chan struct{}, patience time.Duration) error {
	b := append(make([]byte, 0, snapshotBytes+len(args.Configuration)), g.to(to)...)
	for _, v := range []uint64{args.Term, args.LastLogIndex, args.LastLogTerm, args.ConfigurationIndex, uint64(args.Size)} {
		b = putU64(b, v)
	}
	b = append(putU32(b, uint32(args.SnapshotVersion)), args.Configuration...)
	if err := s.bulk.push(&outgoing{lane: g.id, header: header{kind: kindSnapshot, seq: seq}, fixed: b}); err != nil {
		return err
	}
	for left := args.Size; left > 0; {
		n := int(min(left, snapshotChunk))
		for !c.take(n) {
			select {
			case <-c.more:
				s.extend(seq, patience)
			case <-early: // refused, failed, or no longer waited for
				return errStalled
			}
		}
		chunk := make([]byte, n)
		if _, err := io.ReadFull(data, chunk); err != nil {
			return fmt.Errorf("reading the snapshot to send: %w", err)
		}
		if err := s.bulk.push(&outgoing{lane: g.id, header: header{kind: kindData, seq: seq}, fixed: chunk}); err != nil {
			return err
		}
		left -= int64(n)
	}
	s.extend(seq, patience)
	return nil
}

// stream is a snapshot that is being received: raft reads it while it comes.
type stream struct {
	s        *served
	seq      uint64
	size     int64
	came     int64 // bytes that were received; used by the connection's reader alone
	patience time.Duration
	wake     chan struct{}

	mu      sync.Mutex // guards all below
	chunks  [][]byte
	waiting int   // bytes of chunks
	read    int64 // bytes that raft has
	err     error
}

func (s *served) takeSnapshot(h header, body []byte) error {
	r := bodyReader{body}
	member := r.member()
	req := &raft.InstallSnapshotRequest{
		RPCHeader: s.header(), Term: r.u64(), LastLogIndex: r.u64(), LastLogTerm: r.u64(),
		ConfigurationIndex: r.u64(), Size: int64(r.u64()), SnapshotVersion: raft.SnapshotVersion(r.u32()),
	}
	req.Configuration = slices.Clone(r.b)
	maps.DeleteFunc(s.streams, func(_ uint64, st *stream) bool { return st.failed() })
	if req.Size < 0 || s.streams[h.seq] != nil || len(s.streams) >= maxPartial {
		return fmt.Errorf("%w: snapshot of %d bytes", errProtocol, req.Size)
	}
	if err := checkConfiguration(req.Configuration); err != nil {
		return err
	}
	given, ok := s.mayInstall(h, member, req)
	if !ok {
		return nil
	}
	if !s.t.budget.take(snapshotWindow) {
		s.t.stats.busy.Add(1)
		s.answer(h.seq, answer{status: statusBusy})
		return nil
	}
	st := &stream{s: s, seq: h.seq, size: req.Size, patience: restoreTimes * s.t.o.Timeout, wake: make(chan struct{}, 1)}
	if s.deliver(member, &inbound{from: s, seq: h.seq, command: req, stream: st, given: given, held: snapshotWindow}) && req.Size > 0 {
		s.streams[h.seq] = st
	}
	return nil
}

// mayInstall says whether raft may get a snapshot, and how many requests it had been given when that was decided. Where it may
// not the request is answered, or will be. As long as raft is with other requests its log may yet become one that has
// what the snapshot is to replace.
func (s *served) mayInstall(h header, member memberAddress, req *raft.InstallSnapshotRequest) (given uint64, ok bool) {
	g := s.t.local(member)
	if g == nil || g.bound.Load() == nil {
		s.answer(h.seq, answer{status: statusNoGroup})
		return 0, false
	}
	given, ok = g.idle()
	if !ok {
		s.t.stats.busy.Add(1)
		s.answer(h.seq, answer{status: statusBusy})
		return 0, false
	}
	if command := Settled(g.bound.Load().journal, req); command != any(req) {
		s.deliver(member, &inbound{from: s, seq: h.seq, command: command})
		return 0, false
	}
	return given, true
}

// checkConfiguration keeps from raft what it would panic on.
func checkConfiguration(b []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: configuration cannot be decoded: %v", errProtocol, p)
		}
	}()
	raft.DecodeConfiguration(b)
	return nil
}

func (s *served) takeData(h header, body []byte) error {
	st := s.streams[h.seq]
	if st == nil {
		return nil // it was refused while this was on its way
	}
	if len(body) == 0 {
		delete(s.streams, h.seq)
		st.fail(io.ErrUnexpectedEOF)
		return nil
	}
	st.came += int64(len(body))
	if st.came > st.size {
		return fmt.Errorf("%w: snapshot of %d bytes has more", errProtocol, st.size)
	}
	if st.came == st.size {
		delete(s.streams, h.seq)
	}
	return st.add(slices.Clone(body))
}

func (st *stream) add(chunk []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err != nil {
		return nil // nobody reads it any more
	}
	st.chunks = append(st.chunks, chunk)
	st.waiting += len(chunk)
	if st.waiting > snapshotWindow || len(st.chunks) > snapshotWindow/snapshotChunk+maxPartial {
		return fmt.Errorf("%w: %d bytes of a snapshot in %d frames beyond what was asked for", errProtocol, st.waiting, len(st.chunks))
	}
	st.poke()
	return nil
}

func (st *stream) poke() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// fail ends the stream for its reader.
func (st *stream) fail(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err == nil {
		st.err = err
	}
	st.chunks = nil
	st.poke()
}

func (st *stream) failed() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.err != nil
}

var errStalled = errors.New("nothing more of the snapshot comes")

// Read implements io.Reader, for raft. It waits for what comes, but not for ever: raft does nothing else meanwhile.
func (st *stream) Read(b []byte) (int, error) {
	patience := time.NewTimer(st.patience)
	defer patience.Stop()
	for {
		n, err := st.next(b)
		if n > 0 {
			_ = st.s.out.push(&outgoing{header: header{kind: kindTaken, seq: st.seq}, fixed: putU32(nil, uint32(n))})
		}
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-st.wake:
		case <-patience.C:
			st.fail(errStalled)
		}
	}
}

func (st *stream) next(b []byte) (int, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.read == st.size:
		return 0, io.EOF
	case st.err != nil:
		return 0, st.err
	case len(st.chunks) == 0:
		return 0, nil
	}
	n := copy(b, st.chunks[0])
	if st.chunks[0] = st.chunks[0][n:]; len(st.chunks[0]) == 0 {
		st.chunks = st.chunks[1:]
	}
	st.waiting -= n
	st.read += int64(n)
	return n, nil
}
