package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// maxPartial bounds the requests that are under way in several frames on a connection, and the snapshots.
const maxPartial = 1024

var (
	errReplaced = errors.New("the node opened another connection")
	errEmpty    = io.EOF // who connects and says nothing only looked whether there is a listener
)

// served is a connection that another node opened to ask this one. Its maps belong to the reading goroutine.
type served struct {
	t        *Transport
	node     string
	address  string          // where the node is reached; empty: it did not say
	instance uint64          // of its process
	heard    atomic.Int64    // the moment when the last bytes came on this connection
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	calls    chan struct{} // holds a token for each call that is being answered
	calling  sync.WaitGroup
	out      *outbox
	head     raft.RPCHeader // of raft's requests that come on it; nobody changes it
	beats    *pulser
	spare    *beating // for the next heartbeat, of the goroutine that reads
	partial  map[uint64]*partial
	streams  map[uint64]*stream
}

// partial is an append whose frames have not all come.
type partial struct {
	member memberAddress
	req    raft.AppendEntriesRequest
	buf    *[]byte // nil: there is no room, what comes is thrown away
	got    int
	total  int
}

func newServed(t *Transport, h hello, conn net.Conn) *served {
	s := &served{t: t, node: h.node, address: h.address, instance: h.instance, calls: make(chan struct{}, callsAtOnce), partial: map[uint64]*partial{}, streams: map[uint64]*stream{}}
	s.ctx, s.cancel = context.WithCancel(t.ctx)
	s.heard.Store(t.now())
	s.head = headerOf(h.node)
	s.out = newOutbox(conn, t.o.Timeout, &t.stats)
	s.beats = newPulser(s.out, kindBeats, t.o.soon())
	return s
}

// run reads requests until the connection ends, and returns why it did.
func (s *served) run(r *bufio.Reader) error {
	var writing sync.WaitGroup
	writing.Go(func() { _ = s.out.run() }) // the reader sees the end too
	err := s.read(r)
	s.cancel()
	s.out.close(err)
	writing.Wait()
	s.calling.Wait()
	s.beats.stop()
	for _, p := range s.partial {
		s.drop(p)
	}
	for _, st := range s.streams {
		st.fail(io.ErrUnexpectedEOF)
	}
	return err
}

func (s *served) read(r *bufio.Reader) error {
	var body []byte
	for {
		if err := s.out.conn.SetReadDeadline(time.Now().Add(s.t.o.idle())); err != nil {
			return err
		}
		h, err := readHeader(r)
		if err != nil {
			return err
		}
		s.hear(int(h.length) + headerBytes)
		switch h.kind {
		case kindAppend:
			err = s.takeAppend(h, r)
		case kindMore:
			err = s.takeMore(h, r)
		default:
			if cap(body) < int(h.length) {
				body = make([]byte, h.length)
			}
			body = body[:h.length]
			if _, err = io.ReadFull(r, body); err == nil {
				err = s.take(h, body)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (s *served) hear(n int) {
	now := s.t.now()
	s.heard.Store(now)
	s.t.stats.bytesReceived.Add(uint64(n))
	s.t.stats.framesReceived.Add(1)
	if p, err := s.t.peer(s.node); err == nil {
		p.heard.Store(now)
	}
}

// answer sends the answer to a request. If it cannot, the connection is at its end.
func (s *served) answer(seq uint64, a answer) {
	f := a.frame(seq)
	h, _ := parseHeader(f) // we have just made it
	_ = s.out.push(&outgoing{header: h, fixed: f[headerBytes:]})
}

func (s *served) beat(seq uint64, a answer) {
	_ = s.beats.add(func(b []byte) []byte { return a.appendBeat(b, seq) })
}

func (s *served) header() raft.RPCHeader { return s.head }

// take handles a request that is one frame.
func (s *served) take(h header, body []byte) error {
	switch h.kind {
	case kindPulses:
		return s.takePulses(body)
	case kindVote, kindPreVote:
		s.takeVote(h, body)
	case kindTimeout:
		s.takeTimeout(h, body)
	case kindStanding:
		s.takeStanding(h, body)
	case kindSnapshot:
		return s.takeSnapshot(h, body)
	case kindData:
		return s.takeData(h, body)
	case kindCall:
		s.takeCall(h, body)
	default:
		return fmt.Errorf("%w: frame of kind %d for a request", errProtocol, h.kind)
	}
	return nil
}

// takeTimeout has the member here stand for election, unless it may not.
func (s *served) takeTimeout(h header, body []byte) {
	id := (&bodyReader{body}).member()
	if g := s.t.local(id); g != nil && !g.mayStand() {
		s.answer(h.seq, answer{status: statusFailed, text: "this member has no vote, or may not vote now"})
		return
	}
	s.deliver(id, &inbound{from: s, seq: h.seq, command: &raft.TimeoutNowRequest{RPCHeader: s.header()}})
}

// takeVote gives raft a request for a vote, unless the member here is none of those that count, or may not vote so.
func (s *served) takeVote(h header, body []byte) {
	r := bodyReader{body}
	id := r.member()
	term, index, lastTerm := r.u64(), r.u64(), r.u64()
	g := s.t.local(id)
	if g == nil {
		s.answer(h.seq, answer{status: statusNoGroup})
		return
	}
	head := s.header()
	candidate, votes := g.candidate(s.node, index, lastTerm)
	if head.ID = []byte(candidate); !votes || !g.mayVote(index, lastTerm) {
		s.answer(h.seq, answer{status: statusOK, term: g.term.Load(), instance: g.instance})
		return
	}
	var command any = &raft.RequestPreVoteRequest{RPCHeader: head, Term: term, LastLogIndex: index, LastLogTerm: lastTerm}
	if h.kind == kindVote {
		command = &raft.RequestVoteRequest{
			RPCHeader: head, Term: term, LastLogIndex: index, LastLogTerm: lastTerm,
			LeadershipTransfer: h.flags&flagTransfer != 0,
		}
	}
	s.deliver(id, &inbound{from: s, seq: h.seq, command: command})
}

// deliver gives a request to its group, or answers why it cannot.
func (s *served) deliver(id memberAddress, in *inbound) bool {
	got := statusNoGroup
	if g := s.t.local(id); g != nil {
		got = g.deliver(in)
	}
	if got == statusOK {
		return true
	}
	if got == statusBusy {
		s.t.stats.busy.Add(1)
	}
	in.reply(answer{status: got})
	in.free(s.t)
	return false
}

func (s *served) takePulses(body []byte) error {
	if len(body) == 0 { // asks whether we are here
		_ = s.out.push(&outgoing{header: header{kind: kindBeats}})
		return nil
	}
	if len(body)%pulseBytes != 0 {
		return fmt.Errorf("%w: %d bytes of pulses", errProtocol, len(body))
	}
	for r := (bodyReader{body}); len(r.b) > 0; {
		p := pulseIn{from: s, seq: r.u64()}
		g := s.t.local(r.member())
		if p.term, p.instance = r.u64(), r.u64(); g == nil {
			s.beat(p.seq, answer{status: statusNoGroup})
			continue
		}
		g.beat(p)
	}
	_ = s.beats.flush() // an error ends the connection elsewhere
	return nil
}

// takeAppend reads the first frame of an append.
func (s *served) takeAppend(h header, r *bufio.Reader) error {
	var fixed [appendBytes]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return err
	}
	b := bodyReader{fixed[:]}
	p := &partial{member: b.member()}
	p.req = raft.AppendEntriesRequest{
		RPCHeader: s.header(), Term: b.u64(),
		PrevLogEntry: b.u64(), PrevLogTerm: b.u64(), LeaderCommitIndex: b.u64(),
	}
	p.total = int(b.u32())
	if s.partial[h.seq] != nil {
		return fmt.Errorf("%w: two requests with one number", errProtocol)
	}
	first := int(h.length) - appendBytes
	if p.total > maxRequest || first > p.total || first < min(p.total, chunkBytes) {
		return fmt.Errorf("%w: append of %d bytes starts with %d", errProtocol, p.total, first)
	}
	if s.t.budget.take(int64(p.total)) {
		p.buf = s.t.memory.get(p.total)
	}
	return s.fill(h.seq, p, first, r)
}

func (s *served) takeMore(h header, r *bufio.Reader) error {
	p := s.partial[h.seq]
	if p == nil || int(h.length) > p.total-p.got {
		return fmt.Errorf("%w: %d bytes more of nothing", errProtocol, h.length)
	}
	return s.fill(h.seq, p, int(h.length), r)
}

// fill reads n bytes of an append and delivers it when it is whole.
func (s *served) fill(seq uint64, p *partial, n int, r *bufio.Reader) error {
	var err error
	if p.buf == nil {
		_, err = r.Discard(n)
	} else {
		_, err = io.ReadFull(r, (*p.buf)[p.got:p.got+n])
	}
	p.got += n
	if err != nil {
		delete(s.partial, seq)
		s.drop(p)
		return err
	}
	if p.got < p.total {
		s.partial[seq] = p
		if len(s.partial) > maxPartial {
			return fmt.Errorf("%w: %d unfinished requests", errProtocol, len(s.partial))
		}
		return nil
	}
	delete(s.partial, seq)
	s.deliverAppend(seq, p)
	return nil
}

// drop gives back what an append holds.
func (s *served) drop(p *partial) {
	if p.buf != nil {
		s.t.memory.put(p.buf)
		s.t.budget.give(int64(p.total))
	}
}

func (s *served) deliverAppend(seq uint64, p *partial) {
	if p.buf == nil {
		s.t.stats.busy.Add(1)
		s.answer(seq, answer{status: statusBusy})
		return
	}
	in := &inbound{from: s, seq: seq, command: &p.req, buf: p.buf, held: int64(p.total)}
	if a := s.unpack(p); a.status != statusOK {
		in.reply(a)
		in.free(s.t)
		return
	}
	s.deliver(p.member, in)
}

// unpack makes entries of the frames.
func (s *served) unpack(p *partial) answer {
	g := s.t.local(p.member)
	if g == nil {
		return answer{status: statusNoGroup}
	}
	b := g.bound.Load()
	if b == nil {
		return answer{status: statusNoGroup}
	}
	var err error
	if p.req.Entries, err = b.journal.Received(*p.buf, p.req.PrevLogEntry+1); err == nil {
		err = checkEntries(&p.req)
	}
	if err != nil {
		return answer{status: statusFailed, text: err.Error()}
	}
	settle(b.journal, &p.req)
	return answer{status: statusOK}
}

// checkEntries refuses entries that the leader cannot have meant: its log was cut while they were on their way out.
func checkEntries(req *raft.AppendEntriesRequest) error {
	last := req.PrevLogTerm
	for _, l := range req.Entries {
		if l.Term < last || l.Term > req.Term {
			return fmt.Errorf("entry %d of term %d cannot follow term %d in a request of term %d", l.Index, l.Term, last, req.Term)
		}
		last = l.Term
		if l.Type == raft.LogConfiguration {
			if err := checkConfiguration(l.Data); err != nil {
				return err
			}
		}
	}
	return nil
}
