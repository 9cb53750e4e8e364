package sim_test

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// pipeline sends appends without waiting for the answers. It ends with the first that has none, which raft never sees:
// that is what the real transport does, for the reasons told there.
type pipeline struct {
	w      *wire
	id     raft.ServerID
	target raft.ServerAddress
	done   chan raft.AppendFuture
	end    chan struct{}
	places chan struct{} // tokens of what is on its way or waits to be taken

	mu     sync.Mutex // guards all below
	closed bool
	err    error
}

var _ raft.AppendPipeline = (*pipeline)(nil)

// AppendEntriesPipeline implements raft.Transport.
func (w *wire) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	return &pipeline{w: w, id: id, target: target, done: make(chan raft.AppendFuture, 4*wireQueue+1), end: make(chan struct{}), places: make(chan struct{}, wireQueue)}, nil
}

// future is an append of a pipeline.
type future struct {
	start time.Time
	args  *raft.AppendEntriesRequest
	resp  *raft.AppendEntriesResponse
}

var _ raft.AppendFuture = (*future)(nil)

// Error implements raft.Future.
func (f *future) Error() error { return nil }

// Start implements raft.AppendFuture.
func (f *future) Start() time.Time { return f.start }

// Request implements raft.AppendFuture.
func (f *future) Request() *raft.AppendEntriesRequest { return f.args }

// Response implements raft.AppendFuture.
func (f *future) Response() *raft.AppendEntriesResponse { return f.resp }

// AppendEntries implements raft.AppendPipeline.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := p.failure(); err != nil {
		return nil, err
	}
	if len(p.done) >= 2*wireQueue {
		return nil, errLost // raft does not take the answers
	}
	select {
	case p.places <- struct{}{}:
	case <-p.end:
		return nil, errClosed
	case <-time.After(rpcTimeout):
		return nil, errLost
	}
	f := &future{start: time.Now(), args: args, resp: resp}
	m, err := p.w.pack(p.id, args)
	if err != nil {
		p.fail(err)
		return nil, err
	}
	answers := make(chan raft.RPCResponse, 2)
	m.answers = answers
	p.w.send(p.target, m, true, !p.w.n.weather.disorder)
	p.w.n.running.Go(func() { p.await(f, answers) })
	return f, nil
}

func (p *pipeline) await(f *future, answers <-chan raft.RPCResponse) {
	defer func() { <-p.places }()
	t := time.NewTimer(rpcTimeout)
	defer t.Stop()
	select {
	case r := <-answers:
		if r.Error != nil {
			p.fail(r.Error)
			return
		}
		*f.resp = *r.Response.(*raft.AppendEntriesResponse)
		p.w.note(p.id, f.args, f.resp)
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.closed && p.err == nil {
			p.done <- f // AppendEntries saw to it that there is room
		}
	case <-t.C:
		p.fail(errLost)
	case <-p.w.end:
		p.fail(errClosed)
	}
}

func (p *pipeline) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

func (p *pipeline) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.done }

// Close implements raft.AppendPipeline.
func (p *pipeline) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.end)
		p.done <- &future{start: time.Now(), args: &raft.AppendEntriesRequest{}, resp: &raft.AppendEntriesResponse{}} // as the real one does
	}
	if p.err == nil {
		p.err = errClosed
	}
	return nil
}
