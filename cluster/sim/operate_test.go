package sim_test

import (
	"fmt"
	"math/rand"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// administered is what an operator needs of a group.
type administered interface {
	opened
	Leader() (string, bool)
	Term() uint64
	AddNonvoter(id, address string, timeout time.Duration) error
	AddVoter(id, address string, timeout time.Duration) error
	RemoveMember(id string, timeout time.Duration) error
	HandTo(id raft.ServerID, address raft.ServerAddress) error
	HandOver(may func(raft.Server) bool) error
	Journal() *storage.Journal
}

// groups are the members of the groups in a process that are open.
func (p *process) groups() map[string]administered {
	all := map[string]administered{}
	if g := p.journal.Load(); g != nil {
		all["journal"] = g
	}
	if g := p.commands.Load(); g != nil {
		all["commands"] = g.Machine
	}
	return all
}

// group is one of them, or nil.
func (m *machine) group(name string) administered {
	if p := m.process(); p != nil {
		return p.groups()[name]
	}
	return nil
}

// names are the groups that there are.
func (s settings) names() (all []string) {
	if s.journal {
		all = append(all, "journal")
	}
	if s.commands {
		all = append(all, "commands")
	}
	return all
}

// leader is who leads a group, as it thinks itself.
func (w *world) leader(name string) (*machine, administered) {
	for _, m := range w.all {
		if g := m.group(name); g != nil {
			if _, self := g.Leader(); self {
				return m, g
			}
		}
	}
	return nil, nil
}

func (w *world) strikeGroup(k kind, m *machine, rng *rand.Rand) {
	switch k {
	case transferLead:
		for _, name := range w.s.names() {
			if from, g := w.leader(name); g != nil {
				if rng.Intn(2) == 0 {
					w.clients.Go(func() { w.logf("%s hands the %s over: %v", from.id, name, g.HandOver(nil)) })
					continue
				}
				id, address := raft.ServerID(m.serverID()), raft.ServerAddress(m.id)
				w.clients.Go(func() { w.logf("%s hands the %s to %q: %v", from.id, name, id, g.HandTo(id, address)) })
			}
		}
	case takeSnapshot:
		if p := m.process(); p != nil {
			if g := p.commands.Load(); g != nil {
				w.clients.Go(func() { w.logf("%s takes a snapshot: %v", m.id, g.Machine.Snapshot()) })
			}
		}
	case changeMembers:
		w.change(rng)
	}
}

// change begins to exchange a member for the machine that is none, if no change is under way.
func (w *world) change(rng *rand.Rand) {
	select {
	case w.changing <- struct{}{}:
	default:
		return
	}
	var spare *machine
	var members []*machine
	for _, m := range w.all {
		m.mu.Lock()
		if m.out || !m.founder && !m.joined {
			spare = m
		} else {
			members = append(members, m)
		}
		m.mu.Unlock()
	}
	if spare == nil {
		<-w.changing
		return
	}
	gone := pick(rng, members...)
	w.clients.Go(func() {
		defer func() { <-w.changing }()
		w.exchange(gone, spare)
	})
}

// exchange makes a machine with an empty disk a member in place of another one.
func (w *world) exchange(gone, spare *machine) {
	w.logf("operator: %s comes, %s goes", spare.id, gone.id)
	spare.off()
	spare.renew()
	spare.on()
	steps := []func(g administered) error{
		func(g administered) error { return g.AddNonvoter(spare.serverID(), spare.id, patience) },
		func(g administered) error {
			w.replaceHopeless(spare)
			return g.AddVoter(spare.serverID(), spare.id, patience)
		},
		func(g administered) error { return g.RemoveMember(gone.serverID(), patience) },
	}
	for i, step := range steps {
		for _, name := range w.s.names() {
			if !w.insist(name, step) {
				w.violated("step %d of exchanging %s for %s in the %s does not succeed", i, gone.id, spare.id, name)
				return
			}
		}
		if i == 0 {
			w.until(20*time.Second, func() bool { return w.caughtUp(spare) })
		}
	}
	gone.mu.Lock()
	gone.out = true
	gone.mu.Unlock()
	gone.off()
	w.logf("operator: %s came, %s is gone", spare.id, gone.id)
}

// insist has the leader of a group do something, whoever it is, until it is done.
func (w *world) insist(name string, step func(administered) error) bool {
	return w.until(3*time.Minute, func() bool {
		m, g := w.leader(name)
		if g == nil {
			return false
		}
		err := step(g)
		if err != nil {
			w.logf("operator: %s: %v", m.id, err)
		}
		return err == nil
	})
}

// renew gives a machine a new disk, and a place among those that wait to be added.
func (m *machine) renew() {
	m.disk.wipe()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.founder, m.rotten, m.hopeless, m.out, m.joined = false, nil, false, false, true
	m.rotLog, m.forgot, m.logs = false, false, 0
	m.born++
}

// caughtUp says whether a machine has about what the leaders have.
func (w *world) caughtUp(m *machine) bool {
	for _, name := range w.s.names() {
		_, lead := w.leader(name)
		g := m.group(name)
		if lead == nil || g == nil {
			return false
		}
		want, _ := lead.Journal().LastIndex()
		got, _ := g.Journal().LastIndex()
		if got+20 < want || got == 0 {
			return false
		}
	}
	return true
}

// heal ends all faults and brings everything up. What is damaged on a machine's disk is mended by the others.
func (w *world) heal() {
	w.striking.Wait()
	w.logf("everything heals")
	for len(w.plan) > 0 { // the end of one may plan another
		f := w.plan[0]
		w.plan = w.plan[1:]
		f.do()
	}
	w.net.mu.Lock()
	w.net.weather.lost, w.net.weather.late, w.net.weather.twice = 0, 0, 0
	w.net.mu.Unlock()
	for _, m := range w.all {
		if p := m.process(); p != nil {
			p.mount.Heal()
		}
		if m.isMember() {
			m.on()
		}
	}
	w.changing <- struct{}{} // a change that is under way comes to its end
	for _, m := range w.all {
		if w.s.journal && m.isMember() && (m.isRotten() || m.hasForgotten()) {
			w.recover(m)
		}
	}
}

// isMember says whether the machine is, or will be, in the groups.
func (m *machine) isMember() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return (m.founder || m.joined) && !m.out
}

// replaceHopeless replaces the copies of a machine that cannot be mended, if they have not been yet.
func (w *world) replaceHopeless(m *machine) {
	w.replacing.Lock()
	defer w.replacing.Unlock()
	if m.isHopeless() {
		w.replace(m)
	}
}

func (m *machine) isHopeless() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hopeless
}

// replace gives a member a new disk: it is taken out, emptied and added again.
func (w *world) replace(m *machine) {
	for _, name := range w.s.names() {
		if !w.insist(name, func(g administered) error { return g.RemoveMember(m.serverID(), patience) }) {
			w.violated("%s, whose disk is damaged, cannot be taken out of the %s", m.id, name)
			return
		}
	}
	m.off()
	m.renew()
	m.on()
	for _, name := range w.s.names() {
		if !w.insist(name, func(g administered) error { return g.AddNonvoter(m.serverID(), m.id, patience) }) ||
			!w.insist(name, func(g administered) error { return g.AddVoter(m.serverID(), m.id, patience) }) {
			w.violated("%s cannot be added to the %s again", m.id, name)
		}
	}
}

// serve sees that every client gets an answer within bounded time.
func (w *world) serve() {
	before := w.facts.progress()
	var clients []string
	if w.s.journal {
		for n := range producers {
			clients = append(clients, fmt.Sprint("producer ", n))
		}
	}
	if w.s.commands {
		for n := range appliers {
			clients = append(clients, fmt.Sprint("applier ", n))
		}
	}
	left := ""
	if !w.until(time.Minute, func() bool {
		now := w.facts.progress()
		for _, c := range clients {
			if now[c] <= before[c] {
				left = c
				return false
			}
		}
		return true
	}) {
		w.violated("a minute after all healed %s has got no acknowledgement", left)
	}
}

// converge sees that all members come to have the same within bounded time.
func (w *world) converge() bool {
	why := ""
	ok := w.until(time.Minute, func() bool {
		for _, name := range w.s.names() {
			if why = w.differs(name); why != "" {
				return false
			}
		}
		return true
	})
	if !ok {
		w.violated("a minute after the last append the members are not the same: %s", why)
	}
	return ok
}

// differs says in what the members of a group differ, "" in nothing.
func (w *world) differs(name string) string {
	lead, leader := w.leader(name)
	if leader == nil {
		return "nobody leads the " + name
	}
	want, _ := leader.Journal().LastIndex()
	for _, m := range w.all {
		if !m.isMember() {
			continue
		}
		g := m.group(name)
		if g == nil {
			return fmt.Sprintf("%s has not opened its %s", m.id, name)
		}
		if got, _ := g.Journal().LastIndex(); got == 0 && name == "commands" && w.sameStates() == "" {
			continue // all it has is a snapshot
		} else if got != want {
			return fmt.Sprintf("%s has %d entries of the %s, %s, which leads, %d", m.id, got, name, lead.id, want)
		}
		if jg, ok := g.(*raftgroup.Group); ok {
			for p := range uint32(partitions) {
				_, got := jg.Journal().Bounds(p)
				if _, end := leader.Journal().Bounds(p); got != end {
					return fmt.Sprintf("partition %d ends at %d on %s, at %d on %s", p, got, m.id, end, lead.id)
				}
			}
		}
	}
	return ""
}
