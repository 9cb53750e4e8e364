package cluster

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/cluster/transport"
	"github.com/daybook-data/daybook/internal/retry"
)

// askFirstEvery is how often a member that should lead a new group looks whether the others have opened it.
const askFirstEvery = 20 * time.Millisecond

// standing is a local member of a group, of either kind.
type standing interface {
	Options() raftgroup.Options
	Servers() []raft.Server
	Leader() (id string, self bool)
	Err() error
}

// hasten is standFirst for a journal that was just opened, if it was.
func (n *Node) hasten(h *journalHandle, fresh bool) {
	if g := h.opened(); g != nil {
		n.standFirst(g, fresh)
	}
}

// standFirst has the local member of a group that nobody can have led yet stand for election as soon as it can win: who
// waits for raft's timeout waits for seconds, and clients of a new stream with it. A member that is the only voter stands
// at once, in an old group too.
func (n *Node) standFirst(m standing, fresh bool) {
	g, ok := m.Options().Transport.(*transport.Group)
	if !ok {
		return
	}
	var voters []raft.Server
	for _, s := range m.Servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s)
		}
	}
	switch {
	case len(voters) == 1 && string(voters[0].ID) == m.Options().ID:
		g.Stand()
	case fresh && len(voters) > 1:
		n.wg.Go(func() { n.standWithOthers(m, g, voters) })
	}
}

// standWithOthers stands once most of the voters have opened the group, if this member is on the first node of them that is
// up. It tries for as long as raft's own timers would not.
func (n *Node) standWithOthers(m standing, g *transport.Group, voters []raft.Server) {
	for until := time.Now().Add(m.Options().Timeout); time.Now().Before(until) && retry.Pause(n.ctx, askFirstEvery); {
		if id, _ := m.Leader(); id != "" || m.Err() != nil {
			return
		}
		if n.firstUp(voters) != m.Options().ID {
			continue
		}
		opened := 1 // this one
		for _, s := range voters {
			if string(s.ID) == m.Options().ID || !n.Up(metadata.NodeAt(s.Address)) {
				continue
			}
			if _, err := g.AskStanding(s.ID, s.Address); err == nil {
				opened++
			}
		}
		if opened > len(voters)/2 {
			g.Stand()
			return
		}
	}
}

// firstUp is the member of the first of the voters' nodes that is up.
func (n *Node) firstUp(voters []raft.Server) string {
	for _, s := range voters {
		if n.Up(metadata.NodeAt(s.Address)) {
			return string(s.ID)
		}
	}
	return ""
}
