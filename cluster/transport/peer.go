package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/semaphore"
)

const (
	// peerWindow bounds the bytes of entries on their way to a peer, of all groups.
	peerWindow = 64 << 20
	// leastBackoff and mostBackoff are how long the next try to connect waits; the first one after a session does not.
	leastBackoff = 20 * time.Millisecond
	mostBackoff  = time.Second
)

// peer is another node.
type peer struct {
	t      *Transport
	id     string
	head   raft.RPCHeader // of what it answers; nobody changes it
	window *semaphore.Weighted
	heard  atomic.Int64    // the moment when the last bytes came, on whatever connection
	moved  chan struct{}   // there is a reason to connect now
	ctx    context.Context // ends when it is removed
	remove context.CancelFunc
	twins  twins

	mu       sync.Mutex    // guards all below
	address  string        // where SetPeer says that it is
	seen     string        // where it was seen last; see found
	session  *session      // nil: none
	arrived  chan struct{} // see arrival
	told     string        // the refusal that was logged
	doubled  time.Time     // since when it says that another process is this node; zero: it does not
	dead     bool
	sessions uint64
	err      error
}

func newPeer(t *Transport, id, address string) *peer {
	p := &peer{t: t, id: id, head: headerOf(id), address: address, window: semaphore.NewWeighted(peerWindow), moved: make(chan struct{}, 1), arrived: make(chan struct{})}
	p.ctx, p.remove = context.WithCancel(t.ctx)
	return p
}

// current returns the session, or an error that says why there is none.
func (p *peer) current() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.session != nil:
		return p.session, nil
	case p.err != nil:
		return nil, errors.Join(ErrUnreachable, p.err)
	}
	return nil, ErrUnreachable
}

// move says where the peer is now.
func (p *peer) move(address string) {
	p.mu.Lock()
	if p.address == address {
		p.mu.Unlock()
		return
	}
	p.address = address
	session := p.session
	p.mu.Unlock()
	p.look()
	if session != nil && session.address != address {
		session.end(errors.New("the node has another address now"))
	}
}

// look makes the next try to connect come now.
func (p *peer) look() {
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// run keeps a session to the peer until it is removed.
func (p *peer) run() {
	backoff := time.Duration(0)
	for {
		s, err := p.dial()
		began := time.Now()
		if err == nil {
			p.up(s)
			stop := context.AfterFunc(p.ctx, func() { s.end(ErrClosed) })
			err = s.run()
			stop()
		}
		if time.Since(began) > mostBackoff {
			backoff = 0
		} else { // also after a session that ended at once: two nodes may have one id
			backoff = min(max(2*backoff, leastBackoff), mostBackoff)
		}
		p.down(err)
		p.suspect(err)
		wait := time.NewTimer(backoff/2 + rand.N(backoff/2+1))
		select {
		case <-p.ctx.Done():
			wait.Stop()
			return
		case <-p.moved:
			wait.Stop()
		case <-wait.C:
		}
	}
}

// dialAt makes a session to the peer at an address.
func (p *peer) dialAt(address string) (*session, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.t.o.Timeout)
	defer cancel()
	s := &session{peer: p, address: address, ended: make(chan struct{}), calls: map[uint64]*call{}}
	var conns [lanes]*connected
	for lane := range conns {
		var err error
		if conns[lane], err = p.t.connect(ctx, p.id, address, uint8(lane)); err != nil {
			if lane > 0 {
				_ = conns[0].Close()
			}
			return nil, err
		}
		s.readers[lane], s.instance = conns[lane].r, conns[lane].instance
	}
	s.control = newOutbox(conns[laneControl].Conn, p.t.o.Timeout, &p.t.stats)
	s.bulk = newOutbox(conns[laneBulk].Conn, p.t.o.Timeout, &p.t.stats)
	s.pulses = newPulser(s.control, kindPulses, p.t.o.Window)
	s.heard.Store(p.t.now())
	return s, nil
}

func (p *peer) up(s *session) {
	p.mu.Lock()
	p.session, p.err, p.dead = s, nil, false
	p.heard.Store(p.t.now()) // before anybody sees that it lives
	p.told, p.doubled = "", time.Time{}
	p.sessions++
	close(p.arrived)
	first := p.sessions == 1
	p.mu.Unlock()
	if !first {
		p.t.o.Logger.Info("a node can be reached again", "node", p.id)
	}
}

func (p *peer) down(err error) {
	var refused *RefusedError
	p.mu.Lock()
	had := p.session != nil
	p.session, p.err = nil, err
	if had {
		p.arrived = make(chan struct{})
	}
	address := p.address
	news := errors.As(err, &refused) && p.told != refused.Reason
	if news {
		p.told = refused.Reason
	}
	if refused == nil || !refused.Doubled {
		p.doubled = time.Time{}
	} else if p.doubled.IsZero() {
		p.doubled = time.Now()
	}
	p.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	switch {
	case news && refused.Doubled:
		p.t.o.Logger.Warn("a node refuses this one for now", "node", p.id, "address", address, "error", err)
	case news:
		p.t.o.Logger.Error("a node refuses this one: their groups cannot talk", "node", p.id, "address", address, "error", err)
	case had:
		p.t.o.Logger.Warn("the connection to a node ended; connecting again", "node", p.id, "address", address, "error", err)
	}
}

// suspect decides after a failed try whether the peer is dead: it has no process that listens.
func (p *peer) suspect(err error) {
	if p.heard.Load() == 0 || p.ctx.Err() != nil {
		return // it never was there, or is not to be
	}
	if !errors.Is(err, syscall.ECONNREFUSED) || p.t.serves(p.id) {
		return
	}
	p.mu.Lock()
	already := p.dead
	p.dead = true
	p.mu.Unlock()
	if !already {
		p.t.failover(p.id)
	}
}

// Up says whether there is a connection to a node, and nothing is known of its death.
func (t *Transport) Up(node string) bool {
	p, err := t.peer(node)
	return err == nil && p.alive()
}

// alive says whether the peer can be expected to answer.
func (p *peer) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session != nil && !p.dead
}

func (p *peer) stats() PeerStats {
	p.mu.Lock()
	s := PeerStats{Address: p.address, Up: p.session != nil, Dead: p.dead, Sessions: p.sessions, Err: p.err}
	if !p.doubled.IsZero() {
		s.Doubled = time.Since(p.doubled)
	}
	s.Twin = p.twins.stays(time.Now(), 3*max(p.t.o.Silence, 3*p.t.o.every()))
	session := p.session
	if session != nil {
		s.Address = session.address
	}
	p.mu.Unlock()
	if heard := p.heard.Load(); heard > 0 {
		s.Heard = p.t.at(heard)
	}
	if session != nil {
		session.mu.Lock()
		s.Calls = len(session.calls)
		session.mu.Unlock()
	}
	return s
}
