package transport

import "github.com/hashicorp/raft"

// Candidate says as whom raft on a member, which knows of these servers and has what it says, is shown a candidate whose log
// ends with such an entry.
//
// Raft 1.8.0 votes only for a voter of its own latest configuration. A member that lags has an old one, and may be the one
// whose vote the only candidate with a full log needs: then nobody is ever elected. In Raft it is the candidate's configuration
// that counts, and its log. So a candidate that is ahead of the member is shown as a voter that the member knows, and raft
// compares term, leader and log; it takes the id for nothing else. Who was taken out of the group and has not heard of it is
// not ahead of a member that has: raft refuses it as before, without taking its term, and no leader's ends.
func Candidate(id raft.ServerID, servers []raft.Server, has Standing, index, term uint64) raft.ServerID {
	if has.LastTerm > term || has.LastTerm == term && has.Index >= index {
		return id
	}
	shown := id
	for _, s := range servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == id:
			return id
		default:
			shown = s.ID
		}
	}
	return shown
}

// candidate says as whom raft here is shown a node that asks for a vote, and whether this member may vote at all.
func (g *Group) candidate(node string, index, term uint64) (id raft.ServerID, votes bool) {
	id = raft.ServerID(node)
	b := g.bound.Load()
	if b == nil {
		return id, false
	}
	servers := b.servers()
	for _, s := range servers {
		if string(s.Address) == node {
			id = s.ID
		}
		votes = votes || s.ID == b.self
	}
	if has, ok := g.standing(); ok {
		id = Candidate(id, servers, has, index, term)
	}
	return id, votes
}
