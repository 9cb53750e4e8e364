package transport

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// Journal is what the transport needs of a group's journal: the frames of entries to send, entries out of received
// frames, and what it has in place of entries that a leader does not have any more.
type Journal interface {
	Frames(logs []*raft.Log, maxBytes int) (*storage.Frames, error)
	Received(frames []byte, first uint64) ([]*raft.Log, error)
	Anchor(index, term uint64) (at, of uint64, ok bool)
}

// Group is the transport of one raft group. Raft closes it when it shuts down. It is safe for concurrent use.
type Group struct {
	t        *Transport
	id       GroupID
	instance uint64 // never 0
	rpcs     chan raft.RPC
	ending   chan struct{}
	letGo    chan struct{} // closed by LetGo
	running  sync.WaitGroup
	rest     rest

	letGoOnce sync.Once

	Departures

	heartbeat atomic.Pointer[func(raft.RPC)]
	bound     atomic.Pointer[binding]
	elector   atomic.Pointer[Elector]
	committed atomic.Pointer[Committed]
	voted     atomic.Int64           // the moment when a vote was last asked for
	told      atomic.Int64           // the moment when one was last asked for by who was told to stand
	refused   atomic.Int64           // the moment when one was last refused
	since     atomic.Int64           // the moment since when raft has been with the request it is at; 0: it waits for one
	term      atomic.Uint64          // the highest that raft has answered with
	leader    atomic.Pointer[string] // the node whose append was last accepted; nil: none, or it is this one

	mu        sync.Mutex // guards all below
	closed    bool
	answering bool             // answers runs
	queue     []*inbound       // requests of which no answer is waited for yet, in raft's order
	fed       int              // of them raft has the first in rpcs
	given     uint64           // requests that raft was given
	held      int64            // bytes of requests that are not answered
	flows     map[string]*flow // by peer
	acked     map[raft.ServerID]ackOf
	looked    map[raft.ServerID]ackOf // what acked was when tellCommitted looked last
}

// binding is what the owner of a group tells of it.
type binding struct {
	journal Journal
	self    raft.ServerID
	servers func() []raft.Server
}

var (
	_ raft.Transport   = (*Group)(nil)
	_ raft.WithPreVote = (*Group)(nil)
	_ raft.WithClose   = (*Group)(nil)
)

// Group opens the transport of a group. It has to be bound before entries can be sent or received, and closed, which raft does
// when it shuts down. The error is ErrClosed or ErrGroupExists.
func (t *Transport) Group(id GroupID) (*Group, error) {
	g := &Group{
		t: t, id: id, instance: rand.Uint64() | 1,
		rpcs:   make(chan raft.RPC, raftRequests),
		ending: make(chan struct{}), letGo: make(chan struct{}), flows: map[string]*flow{}, acked: map[raft.ServerID]ackOf{},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, ErrClosed
	case t.groups[id] != nil:
		return nil, fmt.Errorf("%w: %x", ErrGroupExists, id)
	}
	t.groups[id] = g
	return g, nil
}

// Bind says which journal the group has, which member of it this one is, and who the members are as far as it knows,
// which must not wait for raft. A member that is not among them, as it has just been created to take the place of
// another or is not yet added, is not asked to vote: a vote of one that has lost its log is worth nothing.
func (g *Group) Bind(journal Journal, self raft.ServerID, servers func() []raft.Server) {
	g.bound.Store(&binding{journal, self, servers})
	g.t.mu.Lock()
	defer g.t.mu.Unlock()
	if g.t.groups[g.id] == g {
		g.t.member[g.id.address(self)] = g
	}
}

// Close implements raft.WithClose. Requests of peers that are waiting are answered as for a group that is not there.
func (g *Group) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	g.mu.Unlock()
	g.t.mu.Lock()
	delete(g.t.groups, g.id)
	maps.DeleteFunc(g.t.member, func(_ memberAddress, other *Group) bool { return other == g })
	g.t.mu.Unlock()
	close(g.ending)
	g.running.Wait()
	return nil
}

// ledBy says whether node is the leader that this member last followed.
func (g *Group) ledBy(node string) bool {
	l := g.leader.Load()
	return l != nil && *l == node
}

// session returns the session to a member.
func (g *Group) session(target raft.ServerAddress) (*session, error) {
	p, err := g.t.peer(string(target))
	if err != nil {
		return nil, err
	}
	return p.current()
}

// Consumer implements raft.Transport.
func (g *Group) Consumer() <-chan raft.RPC { return g.rpcs }

// LocalAddr implements raft.Transport.
func (g *Group) LocalAddr() raft.ServerAddress { return raft.ServerAddress(g.t.o.Node) }

// EncodePeer implements raft.Transport.
func (g *Group) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// DecodePeer implements raft.Transport.
func (g *Group) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport.
func (g *Group) SetHeartbeatHandler(f func(raft.RPC)) { g.heartbeat.Store(&f) }

// RequestVote implements raft.Transport.
func (g *Group) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	var flags uint8
	if args.LeadershipTransfer {
		flags = flagTransfer
	}
	a, err := g.vote(id, target, kindVote, flags, args.Term, args.LastLogIndex, args.LastLogTerm)
	if err == nil {
		*resp = raft.RequestVoteResponse{RPCHeader: headerOf(string(target)), Term: a.term, Granted: a.flags&flagSuccess != 0}
	}
	return err
}

// RequestPreVote implements raft.WithPreVote.
func (g *Group) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	a, err := g.vote(id, target, kindPreVote, 0, args.Term, args.LastLogIndex, args.LastLogTerm)
	if err == nil {
		*resp = raft.RequestPreVoteResponse{RPCHeader: headerOf(string(target)), Term: a.term, Granted: a.flags&flagSuccess != 0}
	}
	return err
}

func (g *Group) vote(id raft.ServerID, target raft.ServerAddress, kind frameKind, flags uint8, term, index, lastTerm uint64) (answer, error) {
	if !g.mayVote(index, lastTerm) {
		return answer{}, nil // who may not vote for itself does not ask others to: nobody grants it
	}
	s, err := g.session(target)
	if err != nil {
		return answer{}, err
	}
	return s.request(kind, flags, putU64(putU64(putU64(g.to(id), term), index), lastTerm))
}

// to begins the body of a request to a member.
func (g *Group) to(id raft.ServerID) []byte {
	member := g.id.address(id)
	return member[:]
}

// headerOf is the header of what a node asks or answers.
func headerOf(node string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(node), Addr: []byte(node)}
}

// TimeoutNow implements raft.Transport.
func (g *Group) TimeoutNow(id raft.ServerID, target raft.ServerAddress, _ *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	s, err := g.session(target)
	if err != nil {
		return err
	}
	_, err = s.request(kindTimeout, 0, g.to(id))
	resp.RPCHeader = headerOf(string(target))
	return err
}

// AppendEntries implements raft.Transport. What cannot be sent now waits, without its entries; see hold.
func (g *Group) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if isHeartbeat(args) {
		s, err := g.session(target)
		if err != nil {
			return err
		}
		return g.sendHeartbeat(s, id, args.Term, resp)
	}
	h := hold{g: g, to: id, at: target, term: args.Term}
	for {
		err := g.append(id, target, args, resp)
		if err == nil {
			return nil
		}
		args.Entries = nil // they may be large, and raft sends what comes behind those that it sees acknowledged
		g.unfold(id)
		if !h.again(err) {
			return err
		}
	}
}

// append is one attempt of AppendEntries.
func (g *Group) append(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	s, err := g.session(target)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	if err := g.sendAppend(s, id, args, resp, func(err error) { result <- err }); err != nil {
		return err
	}
	if len(args.Entries) == 0 {
		defer g.awaitEmpty(s)()
	}
	return <-result
}

// InstallSnapshot implements raft.Transport.
func (g *Group) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	s, err := g.awaitOpen(id, target, args.Term)
	if err != nil {
		return err
	}
	a, err := g.sendSnapshot(s, id, args, data)
	if err == nil {
		*resp = raft.InstallSnapshotResponse{RPCHeader: headerOf(string(target)), Term: a.term, Success: a.flags&flagSuccess != 0}
	}
	return err
}

// storeMax raises v to at least n.
func storeMax(v *atomic.Uint64, n uint64) {
	for {
		old := v.Load()
		if old >= n || v.CompareAndSwap(old, n) {
			return
		}
	}
}
