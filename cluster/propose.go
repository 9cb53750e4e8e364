package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// proposer puts commands into the metadata log. Commands that arrive while an
// entry is on its way wait and share the next one: fifty commits a second cost
// what a few do.
type proposer struct {
	apply  func(data []byte) (any, error) // replicates one entry and returns what State.Apply gave
	origin func() *metadata.Origin        // of the next entry
	may    func(metadata.Command) error   // refuses commands; nil: none

	queue chan *proposal
	done  chan struct{}
	stop  chan struct{}
	once  sync.Once
}

// proposal is one waiting command.
type proposal struct {
	command metadata.Command
	answer  chan metadata.Result // capacity 1
}

// Bounds of the queue and of one entry. A full queue makes callers wait.
const (
	proposalQueue    = 1024
	proposalsInEntry = 512
)

func newProposer(apply func([]byte) (any, error), next func() *metadata.Origin) *proposer {
	p := &proposer{
		apply: apply, origin: next,
		queue: make(chan *proposal, proposalQueue),
		done:  make(chan struct{}),
		stop:  make(chan struct{}),
	}
	go p.run()
	return p
}

// propose returns once the command is durable and applied, with what it gave.
// If ctx ends first the command may still take effect.
func (p *proposer) propose(ctx context.Context, c metadata.Command) (any, error) {
	if p.may != nil {
		if err := p.may(c); err != nil {
			return nil, err
		}
	}
	w := &proposal{command: c, answer: make(chan metadata.Result, 1)}
	select {
	case p.queue <- w:
	case <-p.stop:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-w.answer:
		return r.Value, r.Err
	case <-p.done:
		// run drains the queue before it ends; an answer may have come with it.
		select {
		case r := <-w.answer:
			return r.Value, r.Err
		default:
			return nil, ErrClosed
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close answers what waits with ErrClosed and returns when run has ended.
func (p *proposer) close() {
	p.once.Do(func() { close(p.stop) })
	<-p.done
}

func (p *proposer) run() {
	defer close(p.done)
	for {
		select {
		case first := <-p.queue:
			p.send(p.gather(first))
		case <-p.stop:
			return
		}
	}
}

// gather takes what waits, up to one entry's bound.
func (p *proposer) gather(first *proposal) []*proposal {
	batch := []*proposal{first}
	for len(batch) < proposalsInEntry {
		select {
		case w := <-p.queue:
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}

// send replicates commands as one entry, or as two if one would be too large.
func (p *proposer) send(batch []*proposal) {
	results, err := p.replicate(batch)
	if errors.Is(err, errEntryTooLarge) {
		p.send(batch[:len(batch)/2])
		p.send(batch[len(batch)/2:])
		return
	}
	for i, w := range batch {
		if err != nil {
			w.answer <- metadata.Result{Err: err}
			continue
		}
		w.answer <- results[i]
	}
}

// errEntryTooLarge says that several commands are more than an entry takes.
var errEntryTooLarge = errors.New("metadata entry is too large")

// entryBytes is how large an entry with several commands may be.
const entryBytes = 1 << 20

func (p *proposer) replicate(batch []*proposal) ([]metadata.Result, error) {
	commands := make([]metadata.Command, len(batch))
	for i, w := range batch {
		commands[i] = w.command
	}
	data, err := metadata.EncodeEntry(p.origin(), commands)
	if err != nil {
		return nil, err
	}
	if len(data) > entryBytes && len(batch) > 1 {
		return nil, errEntryTooLarge
	}
	response, err := p.apply(data)
	if err != nil {
		return nil, fmt.Errorf("writing metadata: %w", err)
	}
	switch r := response.(type) {
	case []metadata.Result:
		return r, nil
	case error:
		return nil, fmt.Errorf("applying metadata: %w", r)
	}
	panic(fmt.Sprintf("cluster: metadata answered with a %T", response))
}
