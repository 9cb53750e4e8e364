package membership

import (
	"cmp"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"
)

// Group is one consumer group.
type Group struct {
	delay  time.Duration // how long the first rebalance waits for more members
	keeper Keeper        // nil: nothing is kept

	mu         sync.Mutex
	closed     bool
	state      State
	generation int32
	kind       string // protocol type, of the members there are
	protocol   string
	leader     string
	members    map[string]*member
	static     map[string]string      // instance id -> member id
	promised   map[string]*time.Timer // ids given out by RequireID, not yet come back
	deadline   *time.Timer            // of the rebalance, or of the members' sync
	early      bool                   // the first rebalance still waits for delay
	keeping    bool                   // the assignment of this generation is being kept
	kept       bool                   // there is something to forget once the group is empty
}

// New returns an empty group. A group's first rebalance waits for delay, so that
// members that start together need only one. Without keep its members are forgotten with it.
func New(delay time.Duration, keep Keeper) *Group {
	return &Group{
		delay:    delay,
		keeper:   keep,
		state:    Empty,
		members:  map[string]*member{},
		static:   map[string]string{},
		promised: map[string]*time.Timer{},
	}
}

// Close ends all timers and answers all who wait with ErrClosed.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.stopDeadline()
	for _, t := range g.promised {
		t.Stop()
	}
	for _, m := range g.members {
		m.stop()
		m.answerJoin(Joined{Err: ErrClosed})
		m.answerSync(Synced{Err: ErrClosed})
	}
}

// CloseIfIdle closes the group if it has neither members nor ids that may come
// back, and reports whether it did.
func (g *Group) CloseIfIdle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	idle := g.state == Empty && len(g.promised) == 0
	g.closed = g.closed || idle
	return idle
}

// Describe returns the group as it stands.
func (g *Group) Describe() Description {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := Description{State: g.state, Type: g.kind}
	if g.state == Stable {
		d.Protocol = g.protocol
	}
	for _, m := range g.sorted() {
		described := MemberDescription{
			Member:   Member{ID: m.id, InstanceID: m.instance},
			ClientID: m.clientID, Host: m.host,
		}
		if g.state == Stable {
			described.Metadata, described.Assignment = m.metadata(g.protocol), m.assignment
		}
		d.Members = append(d.Members, described)
	}
	return d
}

// Heartbeat keeps a member. ErrRebalanceInProgress tells it to join again.
func (g *Group) Heartbeat(memberID, instanceID string, generation int32) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, err := g.current(memberID, instanceID)
	if err != nil {
		return err
	}
	if generation != g.generation {
		return g.another(generation)
	}
	g.keep(m)
	if g.state == PreparingRebalance {
		return ErrRebalanceInProgress
	}
	return nil
}

// another is what a member is told that speaks of another generation than the group's. A later one is what a former
// coordinator began, and did not bring to its assignment: the member joins again.
func (g *Group) another(generation int32) error {
	if generation > g.generation && g.kept {
		return ErrRebalanceInProgress
	}
	return ErrIllegalGeneration
}

// MayCommit decides whether a commit is the group's: by a member of the current
// generation, or (generation < 0) by a client without membership while nobody
// else consumes.
func (g *Group) MayCommit(memberID, instanceID string, generation int32) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if generation < 0 && memberID == "" && instanceID == "" && g.state == Empty {
		return nil
	}
	m, err := g.current(memberID, instanceID)
	if err != nil {
		return err
	}
	if generation != g.generation {
		return ErrIllegalGeneration
	}
	if g.state == CompletingRebalance {
		// Its assignment may be another already.
		return ErrRebalanceInProgress
	}
	g.keep(m)
	return nil
}

// Leave removes a member. It may be named by its instance id alone. It returns
// the id of the member that left.
func (g *Group) Leave(memberID, instanceID string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if instanceID != "" && memberID == "" {
		memberID = g.static[instanceID]
	}
	if t, ok := g.promised[memberID]; ok {
		t.Stop()
		delete(g.promised, memberID)
		g.maybeComplete()
		return memberID, nil
	}
	m, err := g.current(memberID, instanceID)
	if err != nil {
		return memberID, err
	}
	g.remove(m)
	return m.id, nil
}

// current returns the member of that id, and refuses an instance that another
// member has replaced.
func (g *Group) current(memberID, instanceID string) (*member, error) {
	if g.closed {
		return nil, ErrClosed
	}
	if instanceID != "" {
		id, ok := g.static[instanceID]
		if !ok {
			return nil, ErrUnknownMember
		}
		if id != memberID {
			return nil, ErrFencedInstance
		}
	}
	m, ok := g.members[memberID]
	if !ok {
		return nil, ErrUnknownMember
	}
	return m, nil
}

// keep starts the member's session anew. A timer that has fired and waits for the lock
// meanwhile is of the session before, and finds that it is no longer m.expiry.
func (g *Group) keep(m *member) {
	m.stop()
	var timer *time.Timer
	timer = time.AfterFunc(m.session, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if m.expiry == timer {
			g.expire(m)
		}
	})
	m.expiry = timer
}

func (g *Group) expire(m *member) {
	if g.closed || g.members[m.id] != m {
		return
	}
	if m.waits() {
		g.keep(m)
		return
	}
	g.remove(m)
}

// remove takes a member out, and starts a rebalance for what it leaves.
func (g *Group) remove(m *member) {
	g.forget(m)
	m.answerJoin(Joined{Err: ErrUnknownMember})
	m.answerSync(Synced{Err: ErrUnknownMember})
	switch g.state {
	case Stable, CompletingRebalance:
		g.prepare()
	case PreparingRebalance:
		g.maybeComplete()
	}
}

func (g *Group) forget(m *member) {
	m.stop()
	delete(g.members, m.id)
	if m.instance != "" && g.static[m.instance] == m.id {
		delete(g.static, m.instance)
	}
	if g.leader == m.id {
		g.leader = ""
	}
}

// sorted returns the members in a stable order: assignors give the same result
// for the same members.
func (g *Group) sorted() []*member {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *member) int {
		return cmp.Compare(a.id, b.id)
	})
}

func (g *Group) stopDeadline() {
	if g.deadline != nil {
		g.deadline.Stop()
		g.deadline = nil
	}
}

// newMemberID returns an id nobody can guess, readable as the client's.
func newMemberID(j Join) string {
	return cmp.Or(j.InstanceID, j.ClientID, "member") + "-" + rand.Text()
}
