package transport

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// groupBytes bounds what a group has received and not answered; the largest request fits.
	groupBytes = 2 * maxRequest
	// groupRequests bounds the number of these requests: a leader's appends, and votes.
	groupRequests = flowRequests + 16
	// raftRequests is how many of them raft has in front of it, so that it finds the next when it is done with one. The others
	// are in a queue that takes no memory at rest.
	raftRequests = 4
)

// inbound is a request on its way through raft.
type inbound struct {
	from    *served // nil: it comes from the transport itself
	seq     uint64
	beat    bool // it is answered as a heartbeat
	command any
	stream  *stream // of a snapshot
	given   uint64  // of a snapshot: what raft had been given when the log was looked at
	buf     *[]byte // that entries lie in
	held    int64   // bytes of the budget
	resp    chan raft.RPCResponse
}

func (in *inbound) reply(a answer) {
	switch {
	case in.from == nil:
	case in.beat:
		in.from.beat(in.seq, a)
	default:
		in.from.answer(in.seq, a)
	}
}

// free gives back what the request holds. Nobody may be using it any more.
func (in *inbound) free(t *Transport) {
	if in.buf != nil {
		t.memory.put(in.buf)
	}
	t.budget.give(in.held)
	if in.stream != nil {
		in.stream.fail(errors.New("the request was refused"))
	}
}

// deliver queues a request for raft, without waiting. If it does not return statusOK, the request is the caller's.
func (g *Group) deliver(in *inbound) status {
	in.resp = make(chan raft.RPCResponse, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return statusNoGroup
	case g.held+in.held > groupBytes || len(g.queue) == groupRequests:
		return statusBusy
	case in.stream != nil && in.given != g.given:
		return statusBusy // the log may have become longer than it was
	}
	if r, ok := in.command.(*raft.RequestVoteRequest); ok && in.from != nil {
		g.voted.Store(g.t.now())
		if r.LeadershipTransfer {
			g.told.Store(g.t.now())
		}
	}
	g.held += in.held
	g.given++
	g.queue = append(g.queue, in)
	g.feed()
	if !g.answering {
		g.answering = true
		g.running.Go(g.answers)
	}
	return statusOK
}

// feed gives raft what it has room for. The caller holds mu, as nobody else sends.
func (g *Group) feed() {
	for ; g.fed < len(g.queue) && len(g.rpcs) < raftRequests; g.fed++ {
		in := g.queue[g.fed]
		rpc := raft.RPC{Command: in.command, RespChan: in.resp}
		if in.stream != nil {
			rpc.Reader = in.stream
		}
		g.rpcs <- rpc
	}
}

// idle says whether raft is with no request, and how many it was given.
func (g *Group) idle() (given uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.given, !g.answering
}

// next is the request whose answer is waited for next; nil if there is none: then who waits ends.
func (g *Group) next() *inbound {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.answering, g.queue = false, nil
		return nil
	}
	g.feed() // it has answered all that it was given and is not in the queue, so it has room for the first
	in := g.queue[0]
	g.queue[0] = nil
	g.queue, g.fed = g.queue[1:], g.fed-1
	return in
}

// answers waits for raft's answers, in the order of the requests, which is raft's too, as long as there are requests.
func (g *Group) answers() {
	for in := g.next(); in != nil; in = g.next() {
		g.since.Store(g.t.now())
		select {
		case resp := <-in.resp:
			g.since.Store(0)
			in.reply(g.answer(in.from, resp))
			g.release(in)
			in.free(g.t)
		case <-g.ending:
			in.reply(answer{status: statusNoGroup})
			g.t.budget.give(in.held) // raft may still use the memory
			g.abandon()
			return
		}
	}
}

// Busy is for how long raft has been with one request: what is behind that the member does not know yet.
func (g *Group) Busy() time.Duration {
	since := g.since.Load()
	if since == 0 {
		return 0
	}
	return g.t.passed(since)
}

func (g *Group) release(in *inbound) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= in.held
}

// abandon answers what raft will never see. The group is closed, so nothing is added.
func (g *Group) abandon() {
	g.mu.Lock()
	queue := g.queue
	g.queue = nil
	g.mu.Unlock()
	for _, in := range queue {
		in.reply(answer{status: statusNoGroup})
		g.t.budget.give(in.held)
		if in.stream != nil {
			in.stream.fail(ErrClosed)
		}
	}
}

// answer is what raft's response to a request says, after the group has learned from it.
func (g *Group) answer(from *served, resp raft.RPCResponse) answer {
	if resp.Error != nil {
		return answer{status: statusFailed, text: resp.Error.Error(), instance: g.instance}
	}
	a := answer{status: statusOK, instance: g.instance}
	success, append := false, false
	switch r := resp.Response.(type) {
	case *raft.AppendEntriesResponse:
		a.term, a.lastLog, success, append = r.Term, r.LastLog, r.Success, true
		if r.NoRetryBackoff {
			a.flags |= flagNoBackoff
		}
	case *raft.RequestVoteResponse:
		a.term, success = r.Term, r.Granted
		append = r.Granted // it may lead soon, and die before it has sent anything
		if !r.Granted && from != nil {
			g.refused.Store(g.t.now())
		}
	case *raft.RequestPreVoteResponse:
		return answer{status: statusOK, instance: g.instance, term: r.Term, flags: flagIf(r.Granted)} // the term is not its own
	case *raft.InstallSnapshotResponse:
		a.term, success, append = r.Term, r.Success, true
	}
	a.flags |= flagIf(success)
	storeMax(&g.term, a.term)
	if append && success && from != nil {
		g.leader.Store(&from.node)
	}
	return a
}

func flagIf(success bool) uint8 {
	if success {
		return flagSuccess
	}
	return 0
}

// pulseIn is a received heartbeat.
type pulseIn struct {
	from           *served
	seq            uint64
	term, instance uint64
}

// beat answers a heartbeat beside raft's main goroutine, which may be waiting for the disk: raft does no more for it than to
// note who leads and when it was heard. One of a term that is new here makes raft write to the disk and change its state, so
// that goes to the main goroutine like any other request.
func (g *Group) beat(p pulseIn) {
	if p.instance != 0 && p.instance != g.instance {
		p.from.beat(p.seq, answer{status: statusOther})
		return
	}
	handler := g.heartbeat.Load()
	if handler == nil || p.term > g.term.Load() {
		req := &raft.AppendEntriesRequest{RPCHeader: p.from.header(), Term: p.term}
		in := &inbound{from: p.from, seq: p.seq, beat: true, command: req}
		if got := g.deliver(in); got != statusOK {
			in.reply(answer{status: got})
		}
		return
	}
	p.from.beat(p.seq, g.handled(*handler, p))
}

// beating is a heartbeat that raft handles.
type beating struct {
	req  raft.AppendEntriesRequest
	resp chan raft.RPCResponse
}

// handled has raft handle a heartbeat of a term that it knows.
func (g *Group) handled(handler func(raft.RPC), p pulseIn) answer {
	b := p.from.spare
	if b == nil {
		b = &beating{resp: make(chan raft.RPCResponse, 1)}
	}
	p.from.spare = nil
	b.req = raft.AppendEntriesRequest{RPCHeader: p.from.header(), Term: p.term}
	handler(raft.RPC{Command: &b.req, RespChan: b.resp})
	select {
	case r := <-b.resp:
		p.from.spare = b // raft answers before it returns, and keeps nothing of an empty request
		return g.answer(p.from, r)
	default: // raft has ended
		return answer{status: statusNoGroup}
	}
}

// Stand makes the local member stand for election now instead of when its timer fires, if it may vote for itself. That is
// always safe.
func (g *Group) Stand() { g.stand() }

// stand makes raft stand for election now, by the message with which a leader hands over.
func (g *Group) stand() {
	if !g.mayStand() {
		return
	}
	g.wake()
	in := &inbound{command: &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}}
	if g.deliver(in) == statusOK {
		g.t.stats.injected.Add(1)
	}
}

// wake makes a candidate a follower. Raft 1.8.0 does not hear the order to stand while it is a candidate: one whose timer fired
// before the others knew of the leader's death was refused, and would wait for up to two election timeouts. What ends its
// candidacy is a request for a vote in a later term, its own, that it has to refuse as its log ends with something.
func (g *Group) wake() {
	e, b := g.elector.Load(), g.bound.Load()
	if e == nil || e.Candidacy == nil || b == nil {
		return
	}
	term, ok := e.Candidacy()
	if !ok {
		return
	}
	head := headerOf(g.t.o.Node)
	head.ID = []byte(b.self)
	_ = g.deliver(&inbound{command: &raft.RequestVoteRequest{RPCHeader: head, Term: term + 1, LeadershipTransfer: true}}) // then it waits for its timer
}
