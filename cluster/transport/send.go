package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/semaphore"

	"github.com/daybook-data/daybook/storage"
)

const (
	// flowBytes and flowRequests bound what of a group is on its way to a peer. A larger request goes alone.
	flowBytes    = 8 << 20
	flowRequests = 32
)

// flow is the room there is for a group's entries on the way to a peer.
type flow struct {
	bytes, requests *semaphore.Weighted
	out             atomic.Int32 // requests on their way
	answered        atomic.Int64 // the moment when the last answer came: while there are any, a request further back is not late
}

func (g *Group) flow(peer string) *flow {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.flows[peer]
	if f == nil {
		f = &flow{bytes: semaphore.NewWeighted(flowBytes), requests: semaphore.NewWeighted(flowRequests)}
		g.flows[peer] = f
	}
	return f
}

// enter waits for room for n bytes to a peer, and returns how to give it back.
func (g *Group) enter(p *peer, n int) (leave func(), err error) {
	f := g.flow(p.id)
	own := min(int64(n), flowBytes) // is less than the peer's window
	ctx, cancel := context.WithTimeout(p.ctx, g.t.o.Timeout)
	defer cancel()
	if f.requests.Acquire(ctx, 1) != nil {
		return nil, fmt.Errorf("%w: %d requests are on their way", ErrTimeout, flowRequests)
	}
	if f.bytes.Acquire(ctx, own) != nil {
		f.requests.Release(1)
		return nil, fmt.Errorf("%w: %d bytes are on their way", ErrTimeout, flowBytes)
	}
	if p.window.Acquire(ctx, own) != nil {
		f.bytes.Release(own)
		f.requests.Release(1)
		return nil, fmt.Errorf("%w: %d bytes of all groups are on their way", ErrTimeout, peerWindow)
	}
	f.out.Add(1)
	return func() { f.out.Add(-1); p.window.Release(own); f.bytes.Release(own); f.requests.Release(1) }, nil
}

// ackOf is what a member acknowledged last.
type ackOf struct{ term, prev, prevTerm, commit, instance uint64 }

// acknowledged returns the instance of a member's group if the last thing that it acknowledged is what args says.
func (g *Group) acknowledged(member raft.ServerID, args *raft.AppendEntriesRequest) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.acked[member]
	if len(args.Entries) == 0 && a == (ackOf{args.Term, args.PrevLogEntry, args.PrevLogTerm, args.LeaderCommitIndex, a.instance}) {
		return a.instance
	}
	return 0
}

// Acked returns the entry up to which a member had acknowledged this one's log when it last answered, while this one has
// led without a break.
func (g *Group) Acked(member raft.ServerID) (index uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.acked[member]
	return a.prev, ok
}

// appending is an AppendEntries on its way, in one or more requests.
type appending struct {
	g    *Group
	s    *session
	to   raft.ServerID
	args *raft.AppendEntriesRequest
	resp *raft.AppendEntriesResponse

	mu    sync.Mutex // guards all below
	left  int        // requests that are not answered, and one until all are sent
	last  answer     // the answer to the last request, or to the first that was not successful
	err   error
	ended func(error) // nil when it was called
}

// sendAppend sends an AppendEntries and returns when all of it is queued. If it returns nil, ended is called once with
// the outcome, maybe before; resp is filled then, and says no after an error.
func (g *Group) sendAppend(s *session, to raft.ServerID, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse, ended func(error)) error {
	g.leader.Store(nil) // who sends entries leads
	if err := g.Await(to, args.Entries, g.letGo, g.t.o.Timeout); err != nil {
		return err
	}
	a := &appending{g: g, s: s, to: to, args: args, resp: resp, left: 1, ended: ended}
	instance := g.acknowledged(to, args)
	if isHeartbeat(args) || instance != 0 {
		if instance != 0 {
			g.t.stats.folded.Add(1)
		}
		return s.pulse(g.id.address(to), args.Term, instance, &call{done: func(got answer, err error) {
			if got.status == statusOther { // it was opened anew, and has to be told everything
				g.forget(to)
			}
			a.finish(got, err)
		}})
	}
	a.sendAll()
	return nil
}

func isHeartbeat(a *raft.AppendEntriesRequest) bool {
	return a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}

func (g *Group) forget(member raft.ServerID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.acked, member)
}

// sendAll sends the entries in requests of about chunkBytes, each of which is complete: the entry before it is the last
// one of the request before.
func (a *appending) sendAll() {
	prev, prevTerm := a.args.PrevLogEntry, a.args.PrevLogTerm
	rest, requests := a.args.Entries, 0
	for first := true; first || len(rest) > 0; first = false {
		frames, err := a.g.frames(rest)
		if err == nil {
			err = a.send(prev, prevTerm, frames)
		}
		if err != nil {
			a.finish(answer{}, err)
			return
		}
		if n := frames.Count; n > 0 {
			prev, prevTerm = rest[n-1].Index, rest[n-1].Term
			rest = rest[n:]
		}
		requests++
	}
	if requests > 1 {
		a.g.t.stats.split.Add(1)
	}
	a.finish(answer{status: statusOK, flags: flagSuccess}, nil)
}

// frames returns the frames of the first entries; none for none.
func (g *Group) frames(logs []*raft.Log) (*storage.Frames, error) {
	if len(logs) == 0 {
		return &storage.Frames{}, nil
	}
	b := g.bound.Load()
	if b == nil {
		return nil, errors.New("the group's journal is not known yet")
	}
	f, err := b.journal.Frames(logs, chunkBytes)
	if err != nil {
		return nil, fmt.Errorf("reading the frame of entry %d to send it: %w", logs[0].Index, err)
	}
	if f.Bytes > maxRequest {
		f.Release()
		return nil, fmt.Errorf("frame of entry %d has %d bytes", logs[0].Index, f.Bytes)
	}
	return f, nil
}

// send queues one request. The frames are its own from now on.
func (a *appending) send(prev, prevTerm uint64, frames *storage.Frames) error {
	g, p := a.g, a.s.peer
	leave, err := g.enter(p, frames.Bytes)
	if err != nil {
		frames.Release()
		return err
	}
	a.mu.Lock()
	failed := a.ended == nil
	a.left++
	a.mu.Unlock()
	if failed { // the rest would be refused
		frames.Release()
		leave()
		return errors.New("a part was not accepted")
	}
	// Released at the answer, not when written: what the peer has not stored it may have to hold.
	f := g.flow(p.id)
	seq, err := a.s.open(&call{flow: f, done: func(got answer, err error) {
		if err == nil {
			f.answered.Store(g.t.now())
		}
		leave()
		a.finish(got, err)
	}}, queueTimes*g.t.o.Timeout)
	if err != nil {
		frames.Release()
		leave()
		return err
	}
	fixed := append(make([]byte, 0, appendBytes), g.to(a.to)...)
	fixed = putU64(putU64(putU64(putU64(fixed, a.args.Term), prev), prevTerm), a.args.LeaderCommitIndex)
	out := &outgoing{
		lane: g.id, header: header{kind: kindAppend, seq: seq}, fixed: putU32(fixed, uint32(frames.Bytes)), pieces: frames.Pieces,
		sent: func() {
			frames.Release()
			a.s.extend(seq, g.t.o.Timeout)
		},
	}
	if err := a.s.bulk.push(out); err != nil {
		frames.Release()
		a.s.finish(seq, answer{}, err)
	}
	return nil
}

// finish counts off an answer, and ends the whole after the last, or at once after one that is not a success.
func (a *appending) finish(got answer, err error) {
	if err == nil {
		err = got.err()
	}
	success := err == nil && got.flags&flagSuccess != 0
	a.mu.Lock()
	a.left--
	if got.instance != 0 || !success {
		a.last, a.err = got, err
	}
	if a.ended == nil || a.left > 0 && success {
		a.mu.Unlock()
		return
	}
	ended := a.ended
	a.ended = nil
	got, err = a.last, a.err
	a.mu.Unlock()
	*a.resp = raft.AppendEntriesResponse{}
	if err == nil {
		*a.resp = a.s.peer.appended(got)
		if success {
			a.g.note(a.to, a.args, got.instance)
		}
	}
	ended(err)
}

// note keeps what a member acknowledged.
func (g *Group) note(member raft.ServerID, args *raft.AppendEntriesRequest, instance uint64) {
	if isHeartbeat(args) {
		return
	}
	k := ackOf{args.Term, args.PrevLogEntry, args.PrevLogTerm, args.LeaderCommitIndex, instance}
	if n := len(args.Entries); n > 0 {
		k.prev, k.prevTerm = args.Entries[n-1].Index, args.Entries[n-1].Term
	}
	g.mu.Lock()
	g.acked[member] = k
	g.mu.Unlock()
	if k.prev > k.commit {
		g.t.commits.add(g)
	}
}
