package cluster

import (
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/status"
)

// Figures are what one node knows of the cluster without asking others.
type Figures struct {
	Nodes, NodesDown int
	// Copies is how many journals are here, Led how many of them this node leads and serves.
	Copies, Led int
	// UnderReplicated are led here, and have fewer copies in sync than they should have.
	UnderReplicated int
	// Leaderless are those of the whole cluster of which this node knows no leader that is up.
	Leaderless int
	// Lag is how far the copies on other nodes are behind what this node leads, by node.
	Lag map[int32]Lag
	// Coordinates says that this node leads the metadata.
	Coordinates bool
}

// Lag is how far a node is behind, at most and over all journals.
type Lag struct {
	Entries, Bytes         uint64
	MostEntries, MostBytes uint64
}

func (l Lag) add(f status.Follower) Lag {
	l.Entries, l.Bytes = l.Entries+f.Entries, l.Bytes+f.Bytes
	l.MostEntries, l.MostBytes = max(l.MostEntries, f.Entries), max(l.MostBytes, f.Bytes)
	return l
}

// Figures counts what is known here now.
func (n *Node) Figures() Figures {
	f := Figures{Lag: map[int32]Lag{}}
	for _, m := range n.Members() {
		f.Nodes++
		if !n.Up(m.ID) {
			f.NodesDown++
		}
	}
	_, f.Coordinates = n.Coordinator()
	for _, s := range n.meta.Streams() {
		l, err := n.journals.live(s)
		if err != nil {
			continue
		}
		for _, h := range l.journals {
			n.addFigures(&f, l, h)
		}
	}
	return f
}

func (n *Node) addFigures(f *Figures, l *liveStream, h *journalHandle) {
	g := h.opened()
	if g != nil {
		f.Copies++
	}
	if n.trans == nil {
		f.Led = f.Copies
		return
	}
	if g == nil || !g.Serves() {
		if leader, _ := h.leader(); leader < 0 || !n.Up(leader) {
			f.Leaderless++
		}
		return
	}
	f.Led++
	if len(n.journals.inSync(l, h, g)) < l.stream.RoomFor(h.number, n.Members()) {
		f.UnderReplicated++
	}
	last, position := g.Journal().LogEnd()
	for _, s := range g.Servers() {
		if id := metadata.NodeAt(s.Address); id != n.id {
			if r := reportFollower(g, s, last, position); r.Known {
				f.Lag[id] = f.Lag[id].add(r)
			}
		}
	}
}
