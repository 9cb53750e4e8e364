package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

const (
	rpcTimeout = time.Second
	// wireQueue bounds what waits for raft, and a pipeline.
	wireQueue = 64
)

var (
	errLost    = errors.New("no answer came")
	errRefused = errors.New("the member cannot be reached")
	errClosed  = errors.New("the member is closed")
	errBusy    = errors.New("the member is busy")
)

// host is a process on the network: its members of groups, by the group's name.
type host struct {
	id       string
	gone     chan struct{} // closed when the process dies
	listener *listener     // with the real transport
	mu       sync.Mutex    // guards wires
	wires    map[string]*wire
}

// wire is the transport of one member, with messages of its own: each may be lost, late, doubled, or behind one that was
// sent later. A message is for the process that ran when it was sent, as on a connection.
type wire struct {
	n     *network
	h     *host
	group string
	rpcs  chan raft.RPC
	end   chan struct{} // closed by Close

	transport.Departures

	once      sync.Once
	heartbeat atomic.Pointer[func(raft.RPC)]
	journal   atomic.Pointer[transport.Journal]
	self      raft.ServerID // set by Bind, before servers
	servers   atomic.Value  // func() []raft.Server: its own configuration
	elector   atomic.Pointer[transport.Elector]
	instance  uint64
	term      atomic.Uint64 // the highest that raft has answered with

	mu    sync.Mutex               // guards all below
	with  int                      // requests that raft has and has not answered
	acked map[raft.ServerID]uint64 // the last entry that each member acknowledged
}

var (
	_ raft.Transport   = (*wire)(nil)
	_ raft.WithPreVote = (*wire)(nil)
	_ raft.WithClose   = (*wire)(nil)
)

// wire gives the process the transport of a group.
func (n *network) wire(h *host, group string) *wire {
	w := &wire{n: n, h: h, group: group, rpcs: make(chan raft.RPC, wireQueue), end: make(chan struct{}), instance: n.instances.Add(1), acked: map[raft.ServerID]uint64{}}
	h.mu.Lock()
	h.wires[group] = w
	h.mu.Unlock()
	return w
}

// attach makes a process the one that is reached under id.
func (n *network) attach(id string) *host {
	h := &host{id: id, gone: make(chan struct{}), wires: map[string]*wire{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[id] = h
	return h
}

// detach ends a process. Its kernel resets its connections, unless the power is gone too.
func (n *network) detach(h *host, power bool) {
	n.mu.Lock()
	delete(n.hosts, h.id)
	n.off[h.id] = !power
	close(h.gone)
	if h.listener != nil {
		_ = h.listener.Close() // it has no errors
	}
	all := slices.Clone(n.pairs[h.id])
	if power {
		delete(n.pairs, h.id)
	}
	n.mu.Unlock()
	for _, p := range all {
		if power {
			p.reset()
		} else {
			p.lose()
		}
	}
}

// boot gives a machine power: it does not know the connections from before, and says so.
func (n *network) boot(id string) {
	n.mu.Lock()
	n.off[id] = false
	all := slices.Clone(n.pairs[id])
	delete(n.pairs, id)
	n.mu.Unlock()
	for _, p := range all {
		p.reset()
	}
}

// resetAll ends the connections of a machine.
func (n *network) resetAll(id string) {
	n.mu.Lock()
	all := slices.Clone(n.pairs[id])
	off := n.off[id]
	n.mu.Unlock()
	for _, p := range all {
		if !off {
			p.reset()
		}
	}
}

// at returns the member of a group that runs on a machine now.
func (n *network) at(id, group string) *wire {
	n.mu.Lock()
	h := n.hosts[id]
	n.mu.Unlock()
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wires[group]
}

// Bind is called by the group.
func (w *wire) Bind(j transport.Journal, self raft.ServerID, servers func() []raft.Server) {
	w.self = self
	w.servers.Store(servers)
	w.journal.Store(&j)
}

// Elect is called by the group.
func (w *wire) Elect(e transport.Elector) { w.elector.Store(&e) }

// mayVote says whether the member may vote for one whose log ends so. One that is not in its own configuration may not: it
// may have taken the place of one that had acknowledged something.
func (w *wire) mayVote(index, term uint64) bool {
	servers, ok := w.servers.Load().(func() []raft.Server)
	if !ok || !slices.ContainsFunc(servers(), func(s raft.Server) bool { return s.ID == w.self }) {
		return false
	}
	e := w.elector.Load()
	return e == nil || e.MayVote(index, term)
}

// shown is the header with which raft is shown a candidate whose log ends so.
func (w *wire) shown(h raft.RPCHeader, index, term uint64) raft.RPCHeader {
	if s, ok := w.stand(); ok {
		servers := w.servers.Load().(func() []raft.Server)()
		h.ID = []byte(transport.Candidate(raft.ServerID(h.ID), servers, s.Response.(transport.Standing), index, term))
	}
	return h
}

// Acked is called by the group: how far it knows a member to have what this one has.
func (w *wire) Acked(id raft.ServerID) (uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.acked[id]
	return at, ok
}

// note keeps what a member answered to an append.
func (w *wire) note(id raft.ServerID, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	if resp.Success && !isHeartbeat(args) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acked[id] = args.PrevLogEntry + uint64(len(args.Entries))
	}
}

// askStanding is the question what a member has.
type askStanding struct{}

// AskStanding is called by the group.
func (w *wire) AskStanding(_ raft.ServerID, target raft.ServerAddress) (transport.Standing, error) {
	r, err := w.ask(target, message{command: askStanding{}}, true)
	if err != nil {
		return transport.Standing{}, err
	}
	return r.(transport.Standing), nil
}

// stand answers what the member has.
func (w *wire) stand() (raft.RPCResponse, bool) {
	e := w.elector.Load()
	if e == nil {
		return raft.RPCResponse{}, false
	}
	s, ok := e.Standing()
	s.Instance = w.instance
	return raft.RPCResponse{Response: s}, ok
}

// Consumer implements raft.Transport.
func (w *wire) Consumer() <-chan raft.RPC { return w.rpcs }

// LocalAddr implements raft.Transport.
func (w *wire) LocalAddr() raft.ServerAddress { return raft.ServerAddress(w.h.id) }

// EncodePeer implements raft.Transport.
func (w *wire) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }

// DecodePeer implements raft.Transport.
func (w *wire) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport.
func (w *wire) SetHeartbeatHandler(f func(raft.RPC)) { w.heartbeat.Store(&f) }

// Close implements raft.WithClose.
func (w *wire) Close() error {
	w.once.Do(func() { close(w.end) })
	return nil
}

// message is a request on its way.
type message struct {
	from, to *wire
	command  any    // without entries
	frames   []byte // of the entries
	data     []byte // of a snapshot
	answers  chan<- raft.RPCResponse
}

// send lets a message go its way, as often as the network likes.
func (w *wire) send(target raft.ServerAddress, m message, twice, inOrder bool) {
	m.from, m.to = w, w.n.at(string(target), w.group)
	for _, d := range w.n.fates(w.h.id, string(target), twice, inOrder) {
		w.n.running.Go(func() { m.carry(d, string(target)) })
	}
}

// carry brings a message to the other member, and its answer back.
func (m message) carry(d time.Duration, target string) {
	n := m.from.n
	if !n.pass(m.from.h.id, target, d, m.from.h.gone) || m.to == nil {
		return
	}
	resp, ok := m.to.take(m)
	if !ok {
		return
	}
	for _, d := range n.fates(target, m.from.h.id, false, false) {
		if n.pass(target, m.from.h.id, d, m.to.h.gone) {
			m.answers <- resp // there is room for all that can come
		}
	}
}

// take gives a message to raft and waits for the answer.
func (w *wire) take(m message) (raft.RPCResponse, bool) {
	resp := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{RespChan: resp}
	j := w.journal.Load()
	if j == nil {
		return raft.RPCResponse{}, false
	}
	switch c := m.command.(type) {
	case *raft.AppendEntriesRequest:
		r := *c
		if len(m.frames) > 0 {
			var err error
			if r.Entries, err = (*j).Received(bytes.Clone(m.frames), r.PrevLogEntry+1); err != nil {
				return raft.RPCResponse{Error: err}, true
			}
		}
		rpc.Command = transport.Settled(*j, &r)
		if h := w.heartbeat.Load(); h != nil && isHeartbeat(&r) && r.Term <= w.term.Load() {
			select {
			case <-w.end:
				return raft.RPCResponse{}, false
			default:
			}
			(*h)(rpc)
			return w.await(resp)
		}
	case askStanding:
		return w.stand()
	case *raft.RequestVoteRequest:
		if !w.mayVote(c.LastLogIndex, c.LastLogTerm) {
			return raft.RPCResponse{Response: &raft.RequestVoteResponse{}}, true
		}
		r := *c
		r.RPCHeader = w.shown(c.RPCHeader, c.LastLogIndex, c.LastLogTerm)
		rpc.Command = &r
	case *raft.RequestPreVoteRequest:
		if !w.mayVote(c.LastLogIndex, c.LastLogTerm) {
			return raft.RPCResponse{Response: &raft.RequestPreVoteResponse{}}, true
		}
		r := *c
		r.RPCHeader = w.shown(c.RPCHeader, c.LastLogIndex, c.LastLogTerm)
		rpc.Command = &r
	case *raft.InstallSnapshotRequest:
		r := *c
		rpc.Command, rpc.Reader = &r, bytes.NewReader(m.data)
	case *raft.TimeoutNowRequest:
		if s, ok := w.stand(); ok {
			has := s.Response.(transport.Standing)
			if !w.mayVote(has.Index, has.LastTerm) {
				return raft.RPCResponse{Error: errors.New("may not vote")}, true
			}
		}
		r := *c
		rpc.Command = &r
	}
	return w.give(rpc, resp)
}

// give has raft answer a request. A snapshot it gets only while it has no other, as it is the log that decides on it.
func (w *wire) give(rpc raft.RPC, resp chan raft.RPCResponse) (raft.RPCResponse, bool) {
	snapshot, ok := rpc.Command.(*raft.InstallSnapshotRequest)
	w.mu.Lock()
	if ok && w.with > 0 {
		w.mu.Unlock()
		return raft.RPCResponse{Error: errBusy}, true
	}
	if ok {
		rpc.Command = transport.Settled(*w.journal.Load(), snapshot)
	}
	select {
	case w.rpcs <- rpc:
		w.with++
	default:
		w.mu.Unlock()
		return raft.RPCResponse{Error: errBusy}, true
	}
	w.mu.Unlock()
	r, ok := w.await(resp)
	w.mu.Lock()
	w.with--
	w.mu.Unlock()
	if append, is := r.Response.(*raft.AppendEntriesResponse); is && snapshot != nil {
		r.Response = &raft.InstallSnapshotResponse{RPCHeader: append.RPCHeader, Term: append.Term, Success: append.Success}
	}
	return r, ok
}

func (w *wire) await(resp chan raft.RPCResponse) (raft.RPCResponse, bool) {
	select {
	case r := <-resp:
		if a, ok := r.Response.(*raft.AppendEntriesResponse); ok {
			for old := w.term.Load(); old < a.Term && !w.term.CompareAndSwap(old, a.Term); old = w.term.Load() {
			}
		}
		return r, true
	case <-w.end:
		return raft.RPCResponse{}, false
	}
}

func isHeartbeat(a *raft.AppendEntriesRequest) bool {
	return a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}

// ask sends a request and waits for the first answer.
func (w *wire) ask(target raft.ServerAddress, m message, twice bool) (any, error) {
	if w.n.weather.refuses && w.n.severed(w.h.id, string(target)) != nil {
		return nil, errRefused
	}
	answers := make(chan raft.RPCResponse, 2)
	m.answers = answers
	w.send(target, m, twice, false)
	t := time.NewTimer(rpcTimeout)
	defer t.Stop()
	select {
	case r := <-answers:
		return r.Response, r.Error
	case <-t.C:
		return nil, errLost
	case <-w.end:
		return nil, errClosed
	}
}

// RequestVote implements raft.Transport.
func (w *wire) RequestVote(_ raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if !w.mayVote(args.LastLogIndex, args.LastLogTerm) {
		return nil
	}
	r, err := w.ask(target, message{command: args}, true)
	if err == nil {
		*resp = *r.(*raft.RequestVoteResponse)
	}
	return err
}

// RequestPreVote implements raft.WithPreVote.
func (w *wire) RequestPreVote(_ raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if !w.mayVote(args.LastLogIndex, args.LastLogTerm) {
		return nil
	}
	r, err := w.ask(target, message{command: args}, true)
	if err == nil {
		*resp = *r.(*raft.RequestPreVoteResponse)
	}
	return err
}

// TimeoutNow implements raft.Transport.
func (w *wire) TimeoutNow(_ raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	r, err := w.ask(target, message{command: args}, false)
	if err == nil {
		*resp = *r.(*raft.TimeoutNowResponse)
	}
	return err
}

// InstallSnapshot implements raft.Transport.
func (w *wire) InstallSnapshot(_ raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	all, err := io.ReadAll(data)
	if err != nil {
		return err
	}
	r, err := w.ask(target, message{command: args, data: all}, false)
	if err == nil {
		*resp = *r.(*raft.InstallSnapshotResponse)
	}
	return err
}

// AppendEntries implements raft.Transport.
func (w *wire) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	m, err := w.pack(id, args)
	if err != nil {
		return err
	}
	r, err := w.ask(target, m, true)
	if err == nil {
		*resp = *r.(*raft.AppendEntriesResponse)
		w.note(id, args, resp)
	}
	return err
}

// pack makes a message of an append to a member: the entries travel as frames.
func (w *wire) pack(id raft.ServerID, args *raft.AppendEntriesRequest) (message, error) {
	if err := w.Await(id, args.Entries, w.end, rpcTimeout); err != nil {
		return message{}, err
	}
	r := *args
	r.Entries = nil
	m := message{command: &r}
	for rest := args.Entries; len(rest) > 0; {
		j := w.journal.Load()
		if j == nil {
			return m, errClosed
		}
		f, err := (*j).Frames(rest, 1<<20)
		if err != nil {
			return m, fmt.Errorf("reading the frame of entry %d to send it: %w", rest[0].Index, err)
		}
		for _, p := range f.Pieces {
			m.frames = append(m.frames, p...)
		}
		rest = rest[f.Count:]
		f.Release()
	}
	return m, nil
}
