package sim_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// scrubEvery is how often a process reads all of its sealed segments.
const scrubEvery = 3 * time.Second

// copies reaches the copies of the journal on the other machines, over the network.
type copies struct{ p *process }

var _ raftgroup.Copies = copies{}

// Nodes implements cluster.Copies.
func (c copies) Nodes() (ids []string) {
	for _, m := range c.p.m.w.all {
		if m != c.p.m && m.isMember() {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// Ask implements cluster.Copies.
func (c copies) Ask(ctx context.Context, node string, question []byte) ([]byte, error) {
	n, self := c.p.m.w.net, c.p.m.id
	passes := func(from, to string) bool {
		all := n.fates(from, to, false, false)
		return len(all) > 0 && n.pass(from, to, all[0], c.p.host.gone)
	}
	if passes(self, node) {
		answer, err := c.p.m.w.machine(node).answer(question)
		if passes(node, self) {
			return answer, err
		}
	}
	select {
	case <-time.After(rpcTimeout):
		return nil, errLost
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *world) machine(id string) *machine {
	for _, m := range w.all {
		if m.id == id {
			return m
		}
	}
	return nil
}

// answer answers a question of another machine's copy.
func (m *machine) answer(question []byte) ([]byte, error) {
	p := m.process()
	if p == nil {
		return nil, errClosed
	}
	g := p.journal.Load()
	if g == nil {
		return nil, fmt.Errorf("%s has not opened its journal", m.id)
	}
	return g.Answer(question)
}

// scrub reads the sealed segments of the groups over and over until the process ends.
func (p *process) scrub() {
	for {
		select {
		case <-p.over:
			return
		case <-time.After(scrubEvery):
		}
		pace := func(int) error { return nil }
		if g := p.journal.Load(); g != nil {
			if err := g.Check(pace); err != nil && !ended(p, g) {
				p.m.w.logf("%s cannot check its segments: %v", p.m.id, err)
			}
		}
		if g := p.commands.Load(); g != nil {
			found, err := g.Check(pace)
			if err != nil && !ended(p, g) {
				p.m.w.logf("%s cannot check its command log: %v", p.m.id, err)
			}
			if found > 0 && !p.m.mayLackCommands() {
				p.m.w.violated("%s finds damage in its command log that nobody did", p.m.id)
			}
		}
	}
}

// mend mends what keeps the journal from opening, as a node does it.
func (p *process) mend(err error) {
	var d *storage.DamageError
	if !errors.As(err, &d) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*rpcTimeout)
	defer cancel()
	from, err := raftgroup.MendClosed(ctx, p.mount, journalDir, d, copies{p})
	p.m.w.logf("%s mends its journal from %q: %v", p.m.id, from, err)
	if errors.Is(err, storage.ErrCannotMend) {
		p.m.mu.Lock()
		p.m.hopeless = true
		p.m.mu.Unlock()
	}
}

// mended says whether a machine's journal is known to be committed up to an entry, and nothing of that is damaged.
func (m *machine) mended(upTo uint64) bool {
	p := m.process()
	if p == nil {
		return false
	}
	g := p.journal.Load()
	if g == nil || g.Err() != nil || g.Journal().Visible().Index < upTo {
		return false
	}
	err := g.Check(func(int) error { return nil })
	return err == nil && len(g.Journal().Damages()) == 0
}

// recover waits until the damage of a machine's disk is mended. Where its copy has to be replaced it is.
func (w *world) recover(m *machine) {
	var last uint64
	w.until(time.Minute, func() bool {
		_, g := w.leader("journal")
		if g != nil {
			last, _ = g.Journal().LastIndex()
		}
		return g != nil
	})
	if !w.until(time.Minute, func() bool { return m.mended(last) || m.isHopeless() }) {
		w.violated("the damaged journal of %s is not mended: %v", m.id, m.damages())
	}
	w.replaceHopeless(m)
}

func (m *machine) damages() []*storage.DamageError {
	if p := m.process(); p != nil {
		if g := p.journal.Load(); g != nil {
			return g.Journal().Damages()
		}
	}
	return nil
}
