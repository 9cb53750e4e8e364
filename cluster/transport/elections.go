package transport

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// Elector says how a group's member takes part in elections. Its functions must not wait for raft, and are called at any
// time from when it is given on.
type Elector struct {
	// MayVote says whether the member may vote for one whose log ends with such an entry, itself included. Nil: it may.
	MayVote func(index, term uint64) bool
	// Standing says what the member has; ok is false while it does not know.
	Standing func() (s Standing, ok bool)
	// Candidacy says whether the member is a candidate, and in which term. Nil: it never is.
	Candidacy func() (term uint64, ok bool)
}

// Standing is what a member of a group has, as it says itself when it is asked.
type Standing struct {
	Member   raft.ServerID // who answers; copies that a node had one after the other are different members
	Instance uint64        // of the transport's group: another one was started anew
	Leads    bool          // it leads, in Term
	Doubt    bool          // it may be without entries that it had acknowledged
	Term     uint64
	Index    uint64 // of its last entry
	LastTerm uint64 // that entry's term
}

// Elect says how the member takes part in elections. It comes before Bind, until which the member takes part in none.
func (g *Group) Elect(e Elector) { g.elector.Store(&e) }

// mayVote says whether the local member may vote for one whose log ends with such an entry.
func (g *Group) mayVote(index, term uint64) bool {
	e := g.elector.Load()
	return e == nil || e.MayVote == nil || e.MayVote(index, term)
}

// mayStand says whether the local member may be told to stand: it has a vote, as far as it knows, and may give it to
// itself. Raft 1.8.0 looks at neither; one without a vote only makes the leader step down.
func (g *Group) mayStand() bool {
	b := g.bound.Load()
	if b == nil {
		return false
	}
	votes := false
	for _, s := range b.servers() {
		votes = votes || s.ID == b.self && s.Suffrage == raft.Voter
	}
	s, ok := g.standing()
	return votes && (!ok || g.mayVote(s.Index, s.LastTerm))
}

// standing is that of the local member.
func (g *Group) standing() (Standing, bool) {
	e := g.elector.Load()
	if e == nil || e.Standing == nil {
		return Standing{}, false
	}
	s, ok := e.Standing()
	s.Instance = g.instance
	return s, ok
}

// AskStanding asks another member what it has. The answer is of a moment after the call.
func (g *Group) AskStanding(id raft.ServerID, target raft.ServerAddress) (Standing, error) {
	s, err := g.session(target)
	if err != nil {
		return Standing{}, err
	}
	a, err := s.request(kindStanding, 0, g.to(id))
	if err != nil {
		return Standing{}, err
	}
	return parseStanding(a.body)
}

// takeStanding answers what the local member of a group has.
func (s *served) takeStanding(h header, body []byte) {
	g := s.t.local((&bodyReader{body}).member())
	if g == nil {
		_ = s.out.push(replyFrame(h.seq, statusNoGroup, nil)) // an error ends the connection elsewhere
		return
	}
	st, ok := g.standing()
	if !ok {
		_ = s.out.push(replyFrame(h.seq, statusNoGroup, nil))
		return
	}
	_ = s.out.push(replyFrame(h.seq, statusOK, st.append(nil)))
}

// standingBytes is a standing without the member's name.
const standingBytes = 1 + 4*8

func (s Standing) append(b []byte) []byte {
	b = append(b, flagIf(s.Leads)|flagIf(s.Doubt)<<1)
	b = putU64(putU64(putU64(putU64(b, s.Instance), s.Term), s.Index), s.LastTerm)
	return putName(b, string(s.Member))
}

func parseStanding(body []byte) (s Standing, err error) {
	if len(body) < standingBytes+1 {
		return s, fmt.Errorf("%w: standing of %d bytes", errProtocol, len(body))
	}
	r := bodyReader{body[1:]}
	s.Leads, s.Doubt = body[0]&flagSuccess != 0, body[0]&(flagSuccess<<1) != 0
	s.Instance, s.Term, s.Index, s.LastTerm = r.u64(), r.u64(), r.u64(), r.u64()
	name, ok := r.name()
	if !ok || len(r.b) > 0 {
		return s, fmt.Errorf("%w: standing with a malformed name", errProtocol)
	}
	s.Member = raft.ServerID(name)
	return s, nil
}
