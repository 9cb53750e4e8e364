package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

const (
	partitions = 3
	producers  = 4
	appliers   = 2
	// patience is how long a client waits for an answer before it asks somebody else.
	patience = 3 * time.Second
)

func (w *world) startClients() {
	if w.s.journal {
		for n := range producers {
			w.clients.Go(func() { (&producer{w: w, n: n, rng: rand.New(rand.NewSource(w.seed*7 + int64(n)))}).run() })
		}
		for _, m := range w.all {
			w.clients.Go(func() { w.askEnds(m, rand.New(rand.NewSource(w.seed*17+int64(m.id[0])))) })
			w.clients.Go(func() { (&reader{w: w, m: m, rng: rand.New(rand.NewSource(w.seed*11 + int64(m.id[0])))}).run() })
		}
	}
	if w.s.commands {
		for n := range appliers {
			w.clients.Go(func() { w.apply(n, rand.New(rand.NewSource(w.seed*13+int64(n)))) })
		}
	}
	w.clients.Go(w.watchLeaders)
}

// rest waits, or says that the clients have to end.
func (w *world) rest(d time.Duration) bool {
	select {
	case <-w.stop:
		return false
	case <-time.After(d):
		return true
	}
}

// leads returns the processes whose member of the journal's group leads, as they think.
func (w *world) leads() (all []*process) {
	for _, m := range w.all {
		if p := m.process(); p != nil {
			if g := p.journal.Load(); g != nil {
				if _, self := g.Leader(); self {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// producer appends batches, one after the other. Every second one is idempotent: it sends a batch of unknown outcome
// again until it is acknowledged. The others never do.
type producer struct {
	w   *world
	n   int
	rng *rand.Rand
	seq int32

	mu   sync.Mutex
	sent string // the first value of the batch that it waits for; guarded by mu
}

func (c *producer) run() {
	for i := 0; ; i++ {
		values := make([]string, 1+c.rng.Intn(3))
		for k := range values {
			values[k] = fmt.Sprintf("p%d-%d-%d", c.n, i, k)
			if c.w.s.large && c.rng.Intn(10) == 0 {
				values[k] += strings.Repeat("x", c.rng.Intn(6000))
			}
		}
		if !c.append(uint32(c.n%partitions), values) || !c.w.rest(time.Duration(c.rng.Int63n(int64(60*time.Millisecond)))) {
			return
		}
	}
}

// append appends one batch, once or until it is acknowledged. False: the clients have to end.
func (c *producer) append(partition uint32, values []string) bool {
	idempotent := c.n%2 == 0
	c.mu.Lock()
	c.sent = values[0]
	c.mu.Unlock()
	for {
		leaders := c.w.leads()
		if len(leaders) == 0 {
			if !c.w.rest(20 * time.Millisecond) {
				return false
			}
			continue
		}
		acked := c.try(leaders[c.rng.Intn(len(leaders))], partition, values, idempotent)
		if acked && idempotent {
			c.seq += int32(len(values))
		}
		if acked || !idempotent {
			return true
		}
		if !c.w.rest(time.Duration(c.rng.Int63n(int64(30 * time.Millisecond)))) {
			return false
		}
	}
}

// try sends a batch to a process and waits for the answer, or until it takes too long. An answer that comes later counts
// all the same.
func (c *producer) try(p *process, partition uint32, values []string, idempotent bool) (acked bool) {
	w := c.w
	g := p.journal.Load()
	if g == nil {
		return false
	}
	b := &storage.Batch{Partition: partition, Data: encode(-1, -1, values...)}
	if idempotent {
		b.Data = encode(int64(100+c.n), c.seq, values...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	answer := make(chan bool, 1)
	err := g.Append(ctx, []*storage.Batch{b}, func(err error) {
		answer <- c.answered(p, g, b, values, idempotent, err)
	})
	if err != nil {
		if !idempotent {
			w.refused(values)
		}
		return false
	}
	if w.hooks.eager {
		_, end := g.Journal().Bounds(partition) // where it may come to lie; the batch itself is the group's
		for i, v := range values {
			_ = w.facts.ack(c.n, partition, v, end+int64(i))
		}
		return true
	}
	select {
	case acked = <-answer:
		if acked {
			w.facts.inTime(c.n, told{partition, values[0], b.Offset})
		}
		return acked
	case <-time.After(patience):
		return false
	}
}

func (c *producer) waitsFor() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

func (w *world) refused(values []string) {
	for _, v := range values {
		w.facts.refuse(v)
	}
}

// answered takes the answer to an append. What a process says that was killed reaches nobody.
func (c *producer) answered(p *process, g *raftgroup.Group, b *storage.Batch, values []string, idempotent bool, err error) (acked bool) {
	w := c.w
	if p.dead.Load() {
		return false
	}
	if err == nil {
		err = b.Err
	}
	var sequence *storage.SequenceError
	switch {
	case err == nil:
	case errors.Is(err, cluster.ErrUnknownOutcome):
		return false
	case errors.Is(err, cluster.ErrNotLeader), errors.Is(err, storage.ErrDiskFull):
		if !idempotent {
			w.refused(values)
		}
		return false
	case errors.As(err, &sequence):
		if c.waitsFor() == values[0] { // else it is the late answer to one that was acknowledged elsewhere long since
			w.violated("%s refuses %s, and what comes before it was acknowledged: %v", p.m.id, values[0], err)
		}
		return false
	default: // the journal failed: nobody knows
		w.logf("%s answers %s: %v", p.m.id, values[0], err)
		return false
	}
	for i, v := range values {
		w.say(w.facts.ack(c.n, b.Partition, v, b.Offset+int64(i)))
	}
	if !b.Duplicate {
		w.say(w.facts.lead("journal", p.m.id, epochOf(b.Data)))
	}
	if _, end := g.Journal().Bounds(b.Partition); end < b.Offset+int64(len(values)) && g.Err() == nil {
		w.violated("%s acknowledged offset %d of partition %d before it can be read there: its end is %d", p.m.id, b.Offset, b.Partition, end)
	}
	return true
}

// reader reads all partitions of the member on one machine, leader or not.
type reader struct {
	w      *world
	m      *machine
	rng    *rand.Rand
	of     *raftgroup.Group
	cursor [partitions]int64
	ends   [partitions]int64
}

func (r *reader) run() {
	for r.w.rest(50*time.Millisecond + time.Duration(r.rng.Int63n(int64(100*time.Millisecond)))) {
		p := r.m.process()
		if p == nil {
			continue
		}
		g := p.journal.Load()
		if g == nil {
			continue
		}
		if r.of != g { // it was opened anew: what it shows now must be what it showed
			r.of = g
			for i := range r.cursor {
				r.ends[i] = 0
				r.cursor[i] = max(0, r.cursor[i]-int64(r.rng.Intn(50)))
			}
		}
		for part := range uint32(partitions) {
			r.read(p, g, part)
		}
	}
}

func (r *reader) read(p *process, g *raftgroup.Group, part uint32) {
	w, j := r.w, g.Journal()
	start, end := j.Bounds(part)
	if end < r.ends[part] && !ended(p, g) {
		w.violated("the end of partition %d on %s went back from %d to %d", part, r.m.id, r.ends[part], end)
	}
	r.ends[part] = max(end, r.ends[part])
	for r.cursor[part] = max(r.cursor[part], start); r.cursor[part] < end; {
		c, err := j.Read(part, r.cursor[part], 64<<10, -1)
		if err == nil && c.Next == r.cursor[part] {
			c.Release()
			err = fmt.Errorf("offset %d of partition %d is below the end %d and cannot be read", r.cursor[part], part, end)
		}
		var values [][2]any
		if err == nil {
			for _, piece := range c.Pieces {
				if err = decode(piece, func(offset int64, v string) { values = append(values, [2]any{offset, v}) }); err != nil {
					break
				}
			}
			r.cursor[part] = c.Next
			c.Release()
		}
		if err != nil {
			r.failed(p, g, part, err)
			return
		}
		if p.dead.Load() {
			return
		}
		for _, v := range values {
			w.say(w.facts.show(r.m.id, part, v[0].(int64), v[1].(string)))
		}
	}
}

// ended says whether a group is closed, or about to be.
func ended(p *process, g opened) bool {
	select {
	case <-g.Done():
		return true
	case <-p.over:
		return true
	default:
		return g.Err() != nil || p.dead.Load()
	}
}

func (r *reader) failed(p *process, g *raftgroup.Group, part uint32, err error) {
	var outside *storage.RangeError
	var damage *storage.DamageError
	switch {
	case errors.As(err, &outside) && r.w.s.retention > 0: // retention was faster
		r.cursor[part] = outside.Start
	case errors.As(err, &damage):
		r.m.judge(err)
	case ended(p, g), errors.Is(err, storage.ErrClosed):
	default:
		r.w.violated("reading partition %d on %s: %v", part, r.m.id, err)
	}
}

// watchLeaders sees that no term has two leaders.
func (w *world) watchLeaders() {
	for w.rest(20 * time.Millisecond) {
		for _, m := range w.all {
			p := m.process()
			if p == nil {
				continue
			}
			if g := p.journal.Load(); g != nil {
				w.noteLeader("journal", m.id, g)
			}
			if g := p.commands.Load(); g != nil {
				w.noteLeader("commands", m.id, g)
			}
		}
	}
}

func (w *world) noteLeader(group, id string, g interface {
	Term() uint64
	Leader() (string, bool)
}) {
	term := g.Term()
	if _, self := g.Leader(); self && g.Term() == term {
		w.say(w.facts.lead(group, id, term))
	}
}

// apply proposes commands to whoever leads the command group, each one once.
func (w *world) apply(n int, rng *rand.Rand) {
	client := fmt.Sprint("applier ", n)
	for i := 0; w.rest(time.Duration(rng.Int63n(int64(100 * time.Millisecond)))); i++ {
		for _, m := range w.all {
			p := m.process()
			if p == nil {
				continue
			}
			g := p.commands.Load()
			if g == nil {
				continue
			}
			if _, self := g.Leader(); self {
				w.applyOne(client, fmt.Sprintf("c%d-%d-%s", n, i, m.id), p, g)
				if rng.Intn(10) == 0 {
					w.checkBarrier(p, g)
				}
			}
		}
	}
}

func (w *world) applyOne(client, command string, p *process, g *commandMember) {
	got, err := g.Machine.Apply(context.Background(), []byte(command))
	if p.dead.Load() {
		return
	}
	switch {
	case err == nil && got != 1:
		w.violated("%s applied %s %v times", p.m.id, command, got)
	case err == nil:
		w.facts.done(client, command)
	case errors.Is(err, cluster.ErrUnknownOutcome):
	case errors.Is(err, cluster.ErrNotLeader), errors.Is(err, storage.ErrDiskFull):
		w.facts.refuse(command)
	}
}

// checkBarrier sees that a read behind a barrier has all that was acknowledged before.
func (w *world) checkBarrier(p *process, g *commandMember) {
	before := w.facts.commands()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := g.Barrier(ctx); err != nil || p.dead.Load() {
		return
	}
	for _, c := range before {
		if n := g.of(c); n != 1 {
			w.violated("behind a barrier %s has applied %s %d times, which was acknowledged before", p.m.id, c, n)
		}
	}
}
