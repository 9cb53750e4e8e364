package transport

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// MaxEntries is how many entries raft may be configured to put into an AppendEntries. One with so many, of which no others
// follow, may have left a rest: raft's pipeline sends one request each time that entries were stored (raft 1.8.0,
// pipelineSend), and the next only when more are, or after CommitTimeout. So the pipeline ends behind such a request; raft
// then sends single requests until the follower has everything.
const MaxEntries = 64

// pipelineDone is how many answers may wait for raft to take them.
const pipelineDone = 4 * flowRequests

// pipeline is a stream of AppendEntries to one peer, in one session. It ends with the first that has no answer: the next
// call returns the error, and raft goes on with single requests. The lost one is never shown to raft, whose decoder does
// not look at a future's error, and counts even a failure as contact with the follower (raft 1.8.0, pipelineDecode).
type pipeline struct {
	g    *Group
	s    *session
	to   raft.ServerID
	done chan raft.AppendFuture
	end  chan struct{} // closed by Close

	mu     sync.Mutex // guards all below
	flying int        // futures that are not answered
	rested bool       // it ends as there may be a rest
	closed bool
	err    error // why no more are accepted
}

var _ raft.AppendPipeline = (*pipeline)(nil)

func newPipeline(g *Group, s *session, to raft.ServerID) *pipeline {
	return &pipeline{g: g, s: s, to: to, done: make(chan raft.AppendFuture, pipelineDone+2), end: make(chan struct{})}
}

// AppendEntries implements raft.AppendPipeline. It waits while there is no room, but not for longer than the time-out.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if len(args.Entries) == 0 && p.mayRest() {
		return nil, ErrAtRest
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	f := &future{start: time.Now(), args: args, resp: resp, ended: make(chan struct{})}
	ended := func(err error) {
		f.err = err
		close(f.ended)
		p.leave(f)
	}
	if err := p.g.sendAppend(p.s, p.to, args, resp, ended); err != nil {
		ended(err)
	}
	if err := p.failure(); err != nil { // it may have been this one
		return nil, err
	}
	return f, nil
}

// enter waits until the channel of answers has a place for one more: it can then never be full.
func (p *pipeline) enter() error {
	var tick *time.Ticker
	for deadline := time.Now().Add(p.g.t.o.Timeout); ; {
		p.mu.Lock()
		err, room := p.err, p.flying+len(p.done) < pipelineDone
		if err == nil && room {
			p.flying++
		}
		p.mu.Unlock()
		if err != nil || room {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: raft does not take the answers", ErrTimeout)
		}
		if tick == nil { // seldom: raft only has to count
			tick = time.NewTicker(time.Millisecond)
			defer tick.Stop()
		}
		select {
		case <-tick.C:
		case <-p.end:
		}
	}
}

// leave gives raft a future that was answered, or ends the pipeline.
func (p *pipeline) leave(f *future) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying--
	if f.err == nil && !p.closed && p.err == nil {
		p.done <- f // enter kept a place
		if len(f.args.Entries) >= MaxEntries && p.flying == 0 && !p.rested {
			p.rested = true
			p.done <- lastAnswer() // there is a place for it
		}
		return
	}
	if p.err == nil {
		p.err = f.err
	}
}

func (p *pipeline) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.done }

// errPipelineClosed is what an append to a closed pipeline gets.
var errPipelineClosed = errors.New("pipeline is closed")

// Close implements raft.AppendPipeline. What is on its way goes on, unseen. A reader of answers gets a last one that
// ends it: raft waits for that goroutine when it shuts down, and has nothing else to end it with if the one that sends was
// ended because the log cannot be read.
func (p *pipeline) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.end)
		p.done <- lastAnswer() // there is a place for it
	}
	if p.err == nil {
		p.err = errPipelineClosed
	}
	return nil
}

// lastAnswer is an answer that says no, to a request that was never made.
func lastAnswer() *future {
	f := &future{start: time.Now(), args: &raft.AppendEntriesRequest{}, resp: &raft.AppendEntriesResponse{}, ended: make(chan struct{})}
	close(f.ended)
	return f
}

// future is a request of a pipeline.
type future struct {
	start time.Time
	args  *raft.AppendEntriesRequest
	resp  *raft.AppendEntriesResponse
	err   error
	ended chan struct{}
}

var _ raft.AppendFuture = (*future)(nil)

// Error implements raft.Future.
func (f *future) Error() error {
	<-f.ended
	return f.err
}

// Start implements raft.AppendFuture.
func (f *future) Start() time.Time { return f.start }

// Request implements raft.AppendFuture.
func (f *future) Request() *raft.AppendEntriesRequest { return f.args }

// Response implements raft.AppendFuture.
func (f *future) Response() *raft.AppendEntriesResponse { return f.resp }
