package observer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/storage"
)

const (
	// pullBytes is about how much a pull asks for.
	pullBytes = 1 << 20
	// avoidFor is for how long an upstream is not asked for a journal again that it could not give.
	avoidFor = 5 * time.Second
	// reopenPause is how long the next try to open a copy waits that was closed.
	reopenPause = 300 * time.Millisecond
)

// puller copies one journal.
type puller struct {
	o       *Observer
	key     metadata.StreamJournal
	ctx     context.Context
	cancel  context.CancelFunc
	changed chan struct{} // has room for one; wakes run when from or front is another
	told    retry.Told    // used by run alone

	mu      sync.Mutex // guards all below
	from    *link      // whom to pull from; nil: nobody
	client  *mirror.Client
	avoid   map[*link]time.Time // until when
	trimmed map[*link][]byte    // who has not the next frame any more, and the state at its front
	front   []byte              // where the copy is to begin anew, as nobody has what comes next
	stopped error               // why it is given up
	has     storage.End         // up to where the copy goes
	marks   [3]uint64           // what any upstream had, in the last rounds
	marked  time.Time
	behind  behind
}

func newPuller(ctx context.Context, o *Observer, k metadata.StreamJournal) *puller {
	p := &puller{
		o: o, key: k, changed: make(chan struct{}, 1), told: retry.Told{},
		avoid: map[*link]time.Time{}, trimmed: map[*link][]byte{}, behind: behind{since: time.Now()},
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// assign chooses the upstream. It returns whether there is none among those that were given.
func (p *puller) assign(links []*link, now time.Time) (lacking bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []candidate
	var at []*link
	var clients []*mirror.Client
	given, untrimmed := false, false
	known := seen{}
	for _, l := range links {
		e, client, round, ok := l.end(p.key)
		if !ok {
			continue
		}
		known.add(&e, round)
		if _, gone := p.trimmed[l]; gone {
			continue
		}
		untrimmed = true
		if now.Before(p.avoid[l]) {
			continue
		}
		given = given || l.given
		all = append(all, candidate{position: e.Position, given: l.given, leads: e.Leads, current: l == p.from})
		at, clients = append(at, l), append(clients, client)
	}
	p.mark(known.have, now)
	p.behind.look(&known, p.has.Position, now)
	if !untrimmed && len(p.trimmed) > 0 && p.front == nil { // nobody has what comes next
		for _, state := range p.trimmed {
			p.front = state
		}
		clear(p.trimmed)
		p.tell()
		return true
	}
	var from *link
	var client *mirror.Client
	if i := choose(all, p.marks[0]); i >= 0 {
		from, client = at[i], clients[i]
	}
	if from != p.from || client != p.client {
		p.from, p.client = from, client
		p.tell()
	}
	return !given
}

// mark notes what the upstreams have. marks[0] is then what one of them had two rounds ago.
func (p *puller) mark(have uint64, now time.Time) {
	if now.Sub(p.marked) < roundEvery {
		return
	}
	p.marked = now
	p.marks = [3]uint64{p.marks[1], p.marks[2], have}
}

// tell wakes run. The caller holds mu.
func (p *puller) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// run copies until ctx ends, or it cannot go on.
func (p *puller) run() {
	for p.ctx.Err() == nil {
		g, err := p.o.o.Copies.Open(p.key)
		if errors.Is(err, metadata.ErrUnknownStream) || errors.Is(err, metadata.ErrUnknownPartition) {
			return // it was deleted
		}
		if err == nil {
			err = p.follow(g)
		}
		switch {
		case err == nil, p.ctx.Err() != nil:
		case errors.Is(err, storage.ErrClosed):
			retry.Pause(p.ctx, reopenPause) // with the stream; else it is opened again
		default:
			if p.told.Fresh("error", err.Error()) {
				p.o.logger.Error("the copy of a journal is not in order; trying again", "stream", p.key.Stream.String(), "journal", p.key.Journal, "error", err)
			}
			retry.Pause(p.ctx, roundEvery)
		}
		if p.stop() != nil {
			return
		}
	}
}

func (p *puller) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// follow copies from whom it is told to, until the journal ends.
func (p *puller) follow(g *raftgroup.Group) error {
	j := g.Journal()
	for p.ctx.Err() == nil && p.stop() == nil {
		p.note(j)
		p.mu.Lock()
		from, client, front := p.from, p.client, p.front
		p.front = nil
		p.mu.Unlock()
		switch {
		case j.Err() != nil:
			return p.failed(j.Err())
		case front != nil:
			if err := p.restart(j, front); err != nil {
				return err
			}
		case from == nil:
			select {
			case <-p.changed:
			case <-j.Failed():
			case <-p.ctx.Done():
			}
		default:
			if err := p.pull(j, from, client); err != nil {
				return err
			}
		}
	}
	return nil
}

// failed is for a journal that takes nothing any more.
func (p *puller) failed(err error) error {
	if !errors.Is(err, storage.ErrClosed) {
		p.give(err)
	}
	return err
}

// give stops the copying for good.
func (p *puller) give(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.stopped = err
	}
}

// note says up to where the copy goes.
func (p *puller) note(j *storage.Journal) {
	end := j.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has = end
	p.behind.reached(end.Position, time.Now())
}

// restart begins the copy anew behind what nobody has any more.
func (p *puller) restart(j *storage.Journal, front []byte) error {
	end := j.End()
	if err := j.Reset(front); err != nil {
		return err
	}
	if end.Index > 0 {
		p.o.logger.Warn("upstreams have removed records that were not copied yet: the copy begins anew behind them, as it would have been trimmed there too",
			"dir", j.Dir(), "had", end.Position, "begins_at", j.End().Position)
	}
	return nil
}

// pull copies from one upstream, until another one is to be asked.
func (p *puller) pull(j *storage.Journal, from *link, client *mirror.Client) error {
	key := mirrored(p.key)
	next := client.Pull(key, j.End().Index, pullBytes)
	defer func() { next.Cancel() }()
	for {
		var a mirror.Answer
		select {
		case a = <-next.Done():
		case <-p.changed:
			return nil
		case <-j.Failed():
			return nil
		case <-p.ctx.Done():
			return nil
		}
		if a.Err != nil || a.Status != mirror.OK {
			p.refused(from, &a)
			a.Release()
			return nil
		}
		// The next frames come while these are stored.
		next = client.Pull(key, storage.LastOf(a.Body), pullBytes)
		err := p.store(j, a.Body)
		a.Release()
		if err != nil {
			return p.unstored(j, from, err)
		}
		delete(p.told, "full")
		p.note(j)
	}
}

// refused notes that an upstream has not what was asked for.
func (p *puller) refused(from *link, a *mirror.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case a.Err != nil:
	case a.Status == mirror.Trimmed:
		p.trimmed[from] = append([]byte(nil), a.Body...)
	default:
		p.avoid[from] = time.Now().Add(avoidFor)
	}
	if p.from == from {
		p.from, p.client = nil, nil
	}
	if a.Status == mirror.Failed && p.told.Fresh("refused "+from.address, string(a.Body)) {
		p.o.logger.Warn("an upstream cannot give a journal; asking others", "upstream", from.address, "stream", p.key.Stream.String(), "journal", p.key.Journal, "error", string(a.Body))
	}
	p.o.poke()
}

// store stores received frames. All that an upstream gives is committed.
func (p *puller) store(j *storage.Journal, frames []byte) error {
	if err := p.o.o.Admit(); err != nil {
		return err
	}
	if err := j.StoreReceived(frames); err != nil {
		return err
	}
	j.Commit(j.End().Index)
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.trimmed) // they were about what comes next then
	return nil
}

// unstored decides what becomes of frames that could not be stored.
func (p *puller) unstored(j *storage.Journal, from *link, err error) error {
	var diverged *storage.DivergedError
	switch {
	case errors.As(err, &diverged):
		p.o.logger.Error("AN UPSTREAM HAS ANOTHER HISTORY than this copy: one of them has lost or changed what was committed. The copy is read and goes no further. "+
			"Find out which one is right; if it is the upstream, stop the observer, move the journal's directory away, and start it: it is copied anew",
			"upstream", from.address, "stream", p.key.Stream.String(), "dir", j.Dir(), "error", err)
		p.give(err)
		return nil
	case errors.Is(err, storage.ErrDamagedFrame):
		p.refused(from, &mirror.Answer{Status: mirror.Failed, Body: []byte(err.Error())})
		return nil
	case storage.Refused(err):
		if p.told.Fresh("full", "it is") { // the text has numbers that change
			p.o.logger.Error("there is no room: copying waits", "dir", j.Dir(), "error", err)
		}
		retry.Pause(p.ctx, roundEvery)
		return nil
	case errors.Is(err, raft.ErrLogNotFound):
		return nil
	}
	return err
}
