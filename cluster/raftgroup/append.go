package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/semaphore"

	"github.com/daybook-data/daybook/storage"
)

const (
	// proposalBytes is about how much one raft entry carries; a larger batch gets one of its own.
	proposalBytes = 1 << 20
	// inFlight is how many proposals raft has at a time. While all are on their way the queue fills, and the next
	// proposals are larger: that is the group commit.
	inFlight = 8
	// worthBytes is what a proposal of a group of one must carry to be made while another is on its way: raft stores
	// one after the other there, so whatever is smaller is better off growing until then.
	worthBytes = 256 << 10
	// mostAtOnce bounds what a proposal makes room for before it is known how many batches fit.
	mostAtOnce = 512
)

// Append puts batches behind all that was appended before, in their order, and returns without waiting for the disk; it
// waits only while the queue is full. done is called once, from another goroutine, when all batches are stored as the
// journal's mode promises, or refused: each batch then has its result in it, and done gets the error that kept all or
// some from being tried, which is also in their Err. The batches belong to the group until then. done must not block.
// If Append returns an error it did nothing, and done is never called; it does so too if no batch passes its check.
func (g *Group) Append(ctx context.Context, batches []*storage.Batch, done func(error)) error {
	return g.append(ctx, &appending{batches: make([]*storage.Batch, 0, len(batches)), done: done}, batches)
}

// AppendOne is Append of one batch.
func (g *Group) AppendOne(ctx context.Context, b *storage.Batch, done func(error)) error {
	one := &struct {
		appending
		room [1]*storage.Batch
	}{appending: appending{done: done}}
	one.batches = one.room[:0]
	return g.append(ctx, &one.appending, []*storage.Batch{b})
}

func (g *Group) append(ctx context.Context, a *appending, batches []*storage.Batch) error {
	if g.mirrors() {
		return ErrObserver
	}
	for _, b := range batches {
		if err := b.Check(); err == nil {
			a.batches = append(a.batches, b)
			a.bytes += int64(len(b.Data))
		}
	}
	a.left = len(a.batches)
	if a.left == 0 {
		return firstErr(batches)
	}
	return g.queue.add(ctx, a, g.ClosedErr)
}

func firstErr(batches []*storage.Batch) error {
	if len(batches) == 0 {
		return errors.New("append of no batches")
	}
	return batches[0].Err
}

// AppendWait is Append, and waits for the result.
func (g *Group) AppendWait(ctx context.Context, batches []*storage.Batch) error {
	result := make(chan error, 1)
	if err := g.Append(ctx, batches, func(err error) { result <- err }); err != nil {
		return err
	}
	return <-result
}

// appending is one call of Append. The proposer takes its batches in order; the completer counts them off.
type appending struct {
	batches []*storage.Batch // not yet proposed
	bytes   int64            // as counted by the queue
	left    int              // not yet answered; used by the completer alone
	err     error
	done    func(error)
}

// queue is what waits to be proposed, and the two goroutines that move it: one makes proposals, one waits for raft's
// answers in their order. They are there from the first append on until there was none for a while.
type queue struct {
	m     *member
	limit int64
	room  *semaphore.Weighted
	alone bool // the group has one member

	mu      sync.Mutex
	waiting []*appending // guarded by mu
	bytes   int          // of what waits; guarded by mu
	out     int          // proposals on their way; guarded by mu
	telling int          // proposals whose callers are not all told; guarded by mu
	closed  bool         // guarded by mu
	moving  bool         // the goroutines are there; guarded by mu
	used    bool         // since rest looked last; guarded by mu
	tired   bool         // the goroutines are to end; guarded by mu
	wake    chan struct{}

	running sync.WaitGroup

	full bool // the last proposal was refused for want of space; used by propose alone
}

// sentProposal is a proposal that raft has.
type sentProposal struct {
	storage.Proposal
	owners   []*appending // of each batch
	future   raft.ApplyFuture
	withdraw func() // gives the journal's part of it up
}

func (q *queue) init(m *member, limit int64, alone bool) {
	q.m, q.limit, q.room, q.alone = m, limit, semaphore.NewWeighted(limit), alone
	q.wake = make(chan struct{}, 1)
}

func (q *queue) add(ctx context.Context, a *appending, closedErr func() error) error {
	if err := q.room.Acquire(ctx, min(a.bytes, q.limit)); err != nil {
		return err
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		q.room.Release(min(a.bytes, q.limit))
		return closedErr()
	}
	q.waiting = append(q.waiting, a)
	q.bytes += int(a.bytes)
	q.used, q.tired = true, false
	if !q.moving {
		q.moving = true
		sent := make(chan *sentProposal, inFlight-1) // and the one that the completer waits for
		q.running.Go(func() { q.propose(sent) })
		q.running.Go(func() { q.complete(sent) })
	}
	worth := q.worth()
	q.mu.Unlock()
	if worth {
		q.ring()
	}
	return nil
}

// rest has the goroutines end if nothing was appended since it was called last.
func (q *queue) rest() {
	q.mu.Lock()
	q.tired = q.moving && !q.used
	tired := q.tired
	q.used = false
	q.mu.Unlock()
	if tired {
		q.ring()
	}
}

// worth says whether a proposal should be made of what waits. The caller holds mu.
func (q *queue) worth() bool { return !q.alone || q.out == 0 || q.bytes >= worthBytes || q.closed }

// ring wakes propose.
func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close ends the queue: what waits is answered with ErrClosed, what is proposed with what comes of it.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.ring()
	q.running.Wait()
}

// propose makes proposals of what waits until there was nothing for long, or the queue is closed.
func (q *queue) propose(sent chan<- *sentProposal) {
	defer close(sent)
	for {
		p, closed := q.take()
		switch {
		case closed:
			sent <- q.refuse(p, q.m.ClosedErr())
			return
		case len(p.Batches) > 0:
			sent <- q.send(p)
		case q.stops():
			return
		default:
			select {
			case <-q.wake:
			case <-q.m.done: // raft has ended; nothing that comes can be stored
				q.mu.Lock()
				q.closed = true
				q.mu.Unlock()
			}
		}
	}
}

// stops says whether the goroutines end, as nobody has needed them. What comes next has others begin.
func (q *queue) stops() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.tired || len(q.waiting) > 0 || q.telling > 0 {
		return false
	}
	q.moving, q.tired = false, false
	return true
}

// take removes the batches of the next proposal from the queue, none if it is not time for one; when the queue is closed,
// all there are.
func (q *queue) take() (p *sentProposal, closed bool) {
	p = &sentProposal{}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.worth() {
		return p, false
	}
	if n := min(len(q.waiting), mostAtOnce); n > 0 { // appends of one batch are the ones that come in numbers
		p.Batches, p.owners = make([]*storage.Batch, 0, n), make([]*appending, 0, n)
	}
	if len(q.waiting) > 0 || q.closed {
		q.out++
		q.telling++
	}
	size := 0
	defer func() { q.bytes -= size }()
	for len(q.waiting) > 0 {
		a := q.waiting[0]
		for len(a.batches) > 0 {
			b := a.batches[0]
			if len(p.Batches) > 0 && size+len(b.Data) > proposalBytes && !q.closed {
				return p, false
			}
			size += len(b.Data)
			p.Batches, p.owners = append(p.Batches, b), append(p.owners, a)
			a.batches = a.batches[1:]
		}
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
	}
	return p, q.closed
}

// send gives a proposal to raft. Disk space comes first: a full disk refuses here, where nothing was done yet.
func (q *queue) send(p *sentProposal) *sentProposal {
	m := q.m
	data, err := m.journal.Propose(&p.Proposal)
	q.noteSpace(m, err)
	if err != nil {
		return q.refuse(p, err)
	}
	p.future = m.raft.ApplyLog(raft.Log{Data: data}, 0)
	p.withdraw = func() { m.journal.Withdraw(&p.Proposal) }
	return p
}

// noteSpace tells the operator when the disk, or the process's table of open files, becomes full and when it has room again.
// Clients hear of neither: they get an error to retry, and wait.
func (q *queue) noteSpace(m *member, err error) {
	full := storage.Refused(err)
	switch {
	case full && !q.full && errors.Is(err, storage.ErrDiskFull):
		m.o.Logger.Error("the disk is full: appends wait", "dir", m.o.Dir, "error", err)
	case full && !q.full:
		m.o.Logger.Error("too many files are open: appends wait", "dir", m.o.Dir, "error", err)
	case q.full && err == nil:
		m.o.Logger.Info("there is room again: appends go on", "dir", m.o.Dir)
	default:
		return
	}
	q.full = full
}

// refuse answers a proposal that raft never gets.
func (q *queue) refuse(p *sentProposal, err error) *sentProposal {
	p.future, p.withdraw = refused{err}, func() {}
	return p
}

type refused struct{ err error }

func (r refused) Error() error  { return r.err }
func (r refused) Index() uint64 { return 0 }
func (r refused) Response() any { return nil }

// complete waits for the proposals in their order and tells the callers.
func (q *queue) complete(sent <-chan *sentProposal) {
	for p := range sent {
		err := appendErr(p.wait(q.m))
		p.withdraw()
		q.answered()
		for i, b := range p.Batches {
			a := p.owners[i]
			if err != nil {
				b.Err, a.err = err, err
			}
			if a.left--; a.left == 0 {
				q.room.Release(min(a.bytes, q.limit))
				a.done(a.err)
			}
		}
		q.mu.Lock()
		q.telling--
		q.mu.Unlock()
	}
}

// wait waits for the outcome.
func (p *sentProposal) wait(m *member) error {
	if r, ok := p.future.(refused); ok {
		return r.err
	}
	return m.await(p.future)
}

// answered notes that a proposal is no longer on its way: it is time for the next one, if any waits.
func (q *queue) answered() {
	q.mu.Lock()
	q.out--
	more := len(q.waiting) > 0
	q.mu.Unlock()
	if more {
		q.ring()
	}
}

// appendErr gives raft's errors the meaning they have for an append.
func appendErr(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrAbortedByRestore):
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w: %w", ErrClosed, ErrUnknownOutcome, err)
	}
	return err
}
