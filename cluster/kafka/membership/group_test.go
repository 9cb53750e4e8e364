package membership_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

const (
	session   = 10 * time.Second
	rebalance = 30 * time.Second
)

func join(id, instance string, protocols ...string) membership.Join {
	j := membership.Join{
		MemberID: id, InstanceID: instance, ClientID: "c",
		Session: session, Rebalance: rebalance, Type: "consumer",
	}
	if len(protocols) == 0 {
		protocols = []string{"range"}
	}
	for _, p := range protocols {
		j.Protocols = append(j.Protocols, membership.Protocol{Name: p, Metadata: []byte("of " + p)})
	}
	return j
}

// client is one member's side, run in its own goroutine where it waits.
type client struct {
	t     *testing.T
	group *membership.Group
	joins chan membership.Joined
	syncs chan membership.Synced
}

func newClient(t *testing.T, g *membership.Group) *client {
	return &client{t, g, make(chan membership.Joined, 1), make(chan membership.Synced, 1)}
}

func (c *client) join(j membership.Join) {
	go func() { c.joins <- c.group.Join(c.t.Context(), j) }()
	synctest.Wait()
}

func (c *client) sync(s membership.Sync) {
	go func() { c.syncs <- c.group.Sync(c.t.Context(), s) }()
	synctest.Wait()
}

func (c *client) joined() membership.Joined {
	c.t.Helper()
	select {
	case j := <-c.joins:
		return j
	default:
		c.t.Fatal("the join was not answered")
		return membership.Joined{}
	}
}

func (c *client) synced() membership.Synced {
	c.t.Helper()
	select {
	case s := <-c.syncs:
		return s
	default:
		c.t.Fatal("the sync was not answered")
		return membership.Synced{}
	}
}

func (c *client) waiting() {
	c.t.Helper()
	select {
	case j := <-c.joins:
		c.t.Fatalf("join answered with %+v, want it to wait", j)
	case s := <-c.syncs:
		c.t.Fatalf("sync answered with %+v, want it to wait", s)
	default:
	}
}

// stable makes a group of n dynamic members and returns them with their first
// generation's answers; the first is the leader.
func stable(t *testing.T, g *membership.Group, instances ...string) ([]*client, []membership.Joined) {
	t.Helper()
	clients := make([]*client, len(instances))
	joined := make([]membership.Joined, len(instances))
	for i, instance := range instances {
		clients[i] = newClient(t, g)
		clients[i].join(join("", instance))
		if i == 0 {
			joined[0] = clients[0].joined()
			continue
		}
		for k := range i { // the others see the rebalance and join again
			clients[k].join(join(joined[k].MemberID, instances[k]))
		}
		for k := range i + 1 {
			joined[k] = clients[k].joined()
		}
	}
	assignments := map[string][]byte{}
	leader := 0
	for i, j := range joined {
		if j.Err != nil {
			t.Fatalf("member %d: %v", i, j.Err)
		}
		assignments[j.MemberID] = fmt.Appendf(nil, "share %d", i)
		if j.MemberID == j.Leader {
			leader = i
		}
	}
	for i, j := range joined {
		if i != leader {
			clients[i].sync(membership.Sync{MemberID: j.MemberID, InstanceID: instances[i], Generation: j.Generation})
			clients[i].waiting()
		}
	}
	clients[leader].sync(membership.Sync{
		MemberID: joined[leader].MemberID, InstanceID: instances[leader], Generation: joined[leader].Generation, Assignments: assignments,
	})
	for i := range joined {
		if s := clients[i].synced(); s.Err != nil || string(s.Assignment) != fmt.Sprintf("share %d", i) {
			t.Fatalf("member %d got %q, %v", i, s.Assignment, s.Err)
		}
	}
	if d := g.Describe(); d.State != membership.Stable || len(d.Members) != len(instances) {
		t.Fatalf("group is %s with %d members, want Stable with %d", d.State, len(d.Members), len(instances))
	}
	return clients, joined
}

func TestThreeMembersShareOneGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		_, joined := stable(t, g, "", "", "")
		leaders := 0
		for _, j := range joined {
			if j.Generation != joined[0].Generation || j.Leader != joined[0].Leader || j.Protocol != "range" {
				t.Errorf("answers differ: %+v and %+v", j, joined[0])
			}
			if len(j.Members) > 0 {
				leaders++
				if len(j.Members) != 3 {
					t.Errorf("the leader was told of %d members, want 3", len(j.Members))
				}
			}
		}
		if leaders != 1 {
			t.Errorf("%d members were told to lead, want 1", leaders)
		}
	})
}

func TestNewDynamicMemberMustComeBackWithItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		j := join("", "")
		j.RequireID = true
		c := newClient(t, g)
		c.join(j)
		first := c.joined()
		if !errors.Is(first.Err, membership.ErrMemberIDRequired) || first.MemberID == "" {
			t.Fatalf("got %+v, want an id and ErrMemberIDRequired", first)
		}
		if d := g.Describe(); len(d.Members) != 0 {
			t.Fatalf("%d members before the id came back, want 0", len(d.Members))
		}
		j.MemberID = first.MemberID
		c.join(j)
		if second := c.joined(); second.Err != nil || second.MemberID != first.MemberID {
			t.Fatalf("with its id: %+v", second)
		}
	})
}

func TestHeartbeatsTellOfARebalanceAndTheGroupMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		clients, joined := stable(t, g, "")
		if err := g.Heartbeat(joined[0].MemberID, "", joined[0].Generation); err != nil {
			t.Fatalf("heartbeat in a stable group: %v", err)
		}
		late := newClient(t, g)
		late.join(join("", ""))
		late.waiting()
		if err := g.Heartbeat(joined[0].MemberID, "", joined[0].Generation); !errors.Is(err, membership.ErrRebalanceInProgress) {
			t.Fatalf("heartbeat while another joins: %v, want ErrRebalanceInProgress", err)
		}
		clients[0].join(join(joined[0].MemberID, ""))
		again, fresh := clients[0].joined(), late.joined()
		if again.Generation != joined[0].Generation+1 || fresh.Generation != again.Generation {
			t.Fatalf("generations %d and %d after %d", again.Generation, fresh.Generation, joined[0].Generation)
		}
		if err := g.Heartbeat(joined[0].MemberID, "", joined[0].Generation); !errors.Is(err, membership.ErrIllegalGeneration) {
			t.Fatalf("heartbeat of the old generation: %v, want ErrIllegalGeneration", err)
		}
	})
}

func TestSilentMemberIsOutAfterItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		clients, joined := stable(t, g, "", "")
		for range 5 { // the first one lives, the second is silent
			time.Sleep(session / 3)
			err := g.Heartbeat(joined[0].MemberID, "", joined[0].Generation)
			if errors.Is(err, membership.ErrRebalanceInProgress) {
				break
			}
		}
		clients[0].join(join(joined[0].MemberID, ""))
		alone := clients[0].joined()
		if alone.Err != nil || len(alone.Members) != 1 || alone.Generation != joined[0].Generation+1 {
			t.Fatalf("the one left got %+v, want to lead generation %d alone", alone, joined[0].Generation+1)
		}
		if err := g.Heartbeat(joined[1].MemberID, "", joined[1].Generation); !errors.Is(err, membership.ErrUnknownMember) {
			t.Fatalf("the silent one's heartbeat: %v, want ErrUnknownMember", err)
		}
	})
}

func TestMemberThatDoesNotRejoinIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		_, joined := stable(t, g, "")
		late := newClient(t, g)
		late.join(join("", ""))
		for range 4 { // the old member lives, but never joins again
			time.Sleep(session / 2)
			_ = g.Heartbeat(joined[0].MemberID, "", joined[0].Generation)
		}
		late.waiting()
		time.Sleep(rebalance)
		synctest.Wait()
		if j := late.joined(); j.Err != nil || len(j.Members) != 1 {
			t.Fatalf("the new member got %+v, want to be alone", j)
		}
	})
}

func TestLeaderThatNeverAssignsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		clients, joined := stable(t, g, "", "")
		leader, other := 0, 1
		if joined[1].Leader == joined[1].MemberID {
			leader, other = 1, 0
		}
		for i := range clients {
			j := join(joined[i].MemberID, "", "range", "sticky") // a change makes the group rebalance
			clients[i].join(j)
		}
		next := clients[other].joined()
		stuck := clients[leader].joined()
		clients[other].sync(membership.Sync{MemberID: next.MemberID, Generation: next.Generation})
		for range 6 { // the leader lives, but never assigns
			if err := g.Heartbeat(stuck.MemberID, "", stuck.Generation); err != nil {
				t.Fatalf("heartbeat: %v", err)
			}
			clients[other].waiting()
			time.Sleep(rebalance / 6)
		}
		synctest.Wait()
		if s := clients[other].synced(); !errors.Is(s.Err, membership.ErrRebalanceInProgress) {
			t.Fatalf("the follower's sync got %v, want ErrRebalanceInProgress", s.Err)
		}
		clients[other].join(join(next.MemberID, "", "range", "sticky"))
		if j := clients[other].joined(); j.Err != nil || j.Leader != next.MemberID {
			t.Fatalf("got %+v, want the follower to lead", j)
		}
	})
}

func TestStaticMemberReturnsToItsAssignmentWithoutARebalance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		_, joined := stable(t, g, "one", "two")
		back := newClient(t, g)
		back.join(join("", "two"))
		j := back.joined()
		if j.Err != nil || j.Generation != joined[1].Generation || j.MemberID == joined[1].MemberID || len(j.Members) > 0 {
			t.Fatalf("restarted member got %+v, want generation %d under a new id, and not to lead", j, joined[1].Generation)
		}
		back.sync(membership.Sync{MemberID: j.MemberID, InstanceID: "two", Generation: j.Generation})
		if s := back.synced(); s.Err != nil || string(s.Assignment) != "share 1" {
			t.Fatalf("got %q, %v; want its former share", s.Assignment, s.Err)
		}
		if err := g.Heartbeat(joined[1].MemberID, "two", joined[1].Generation); !errors.Is(err, membership.ErrFencedInstance) {
			t.Fatalf("the replaced incarnation's heartbeat: %v, want ErrFencedInstance", err)
		}
	})
}

// KIP-814: a leader that came back assigned anew, though nothing had changed.
func TestReturnedStaticLeaderIsToldNotToAssign(t *testing.T) {
	for _, canSkip := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := membership.New(0, nil)
			defer g.Close()
			_, joined := stable(t, g, "one", "two")
			if joined[0].Leader != joined[0].MemberID {
				t.Fatalf("the first member does not lead: %+v", joined[0])
			}
			again := join("", "one")
			again.CanSkip = canSkip
			back := newClient(t, g)
			back.join(again)
			j := back.joined()
			if j.Err != nil || j.Generation != joined[0].Generation || j.SkipAssignment != canSkip {
				t.Fatalf("can skip %v: got %+v", canSkip, j)
			}
			if leads := j.Leader == j.MemberID; leads != canSkip || canSkip != (len(j.Members) == 2) {
				t.Errorf("can skip %v: leader %s of %d members, the member is %s", canSkip, j.Leader, len(j.Members), j.MemberID)
			}
			back.sync(membership.Sync{MemberID: j.MemberID, InstanceID: "one", Generation: j.Generation})
			if s := back.synced(); s.Err != nil || string(s.Assignment) != "share 0" {
				t.Errorf("can skip %v: got %q, %v; want its former share", canSkip, s.Assignment, s.Err)
			}
		})
	}
}

// A static member that came back while the others waited for their
// assignment got an empty one.
func TestStaticMemberRejoiningDuringAssignmentMakesTheGroupRebalance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		one, two := newClient(t, g), newClient(t, g)
		one.join(join("", "one"))
		first := one.joined()
		two.join(join("", "two"))
		one.join(join(first.MemberID, "one"))
		first, second := one.joined(), two.joined()
		two.sync(membership.Sync{MemberID: second.MemberID, InstanceID: "two", Generation: second.Generation})
		back := newClient(t, g)
		back.join(join("", "two"))
		back.waiting()
		if s := two.synced(); s.Err == nil {
			t.Fatalf("the replaced member's sync got an assignment: %+v", s)
		}
		one.join(join(first.MemberID, "one"))
		first, third := one.joined(), back.joined()
		if first.Generation != third.Generation || third.Generation == second.Generation {
			t.Fatalf("generations %d and %d after %d, want one new one", first.Generation, third.Generation, second.Generation)
		}
	})
}

// JoinGroup version 0 has no rebalance timeout.
func TestJoinWithoutRebalanceTimeoutWaitsForASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		j := join("", "")
		j.Rebalance = 0
		c := newClient(t, g)
		c.join(j)
		first := c.joined()
		if first.Err != nil {
			t.Fatal(first.Err)
		}
		c.sync(membership.Sync{MemberID: first.MemberID, Generation: first.Generation})
		c.synced()
		late := newClient(t, g)
		k := join("", "")
		k.Rebalance = 0
		late.join(k)
		late.waiting() // for the first one to come again
		j.MemberID = first.MemberID
		c.join(j)
		if got := c.joined(); got.Err != nil {
			t.Fatalf("joining again: %v", got.Err)
		}
		if got := late.joined(); got.Err != nil {
			t.Fatalf("joining second: %v", got.Err)
		}
	})
}

func TestOnlyTheCurrentGenerationCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		if err := g.MayCommit("", "", -1); err != nil {
			t.Fatalf("simple commit to an empty group: %v", err)
		}
		_, joined := stable(t, g, "", "static")
		for _, c := range []struct {
			id, instance string
			generation   int32
			want         error
		}{
			{"", "", -1, membership.ErrUnknownMember},
			{"nobody", "", joined[0].Generation, membership.ErrUnknownMember},
			{joined[0].MemberID, "", joined[0].Generation - 1, membership.ErrIllegalGeneration},
			{joined[0].MemberID, "static", joined[0].Generation, membership.ErrFencedInstance},
			{joined[0].MemberID, "", joined[0].Generation, nil},
			{joined[1].MemberID, "static", joined[1].Generation, nil},
		} {
			if err := g.MayCommit(c.id, c.instance, c.generation); !errors.Is(err, c.want) {
				t.Errorf("commit by %q/%q of generation %d: %v, want %v", c.id, c.instance, c.generation, err, c.want)
			}
		}
	})
}

func TestLastLeaveEmptiesTheGroupAndKeepsCountingGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		_, joined := stable(t, g, "", "static")
		if _, err := g.Leave(joined[0].MemberID, ""); err != nil {
			t.Fatal(err)
		}
		if id, err := g.Leave("", "static"); err != nil || id != joined[1].MemberID {
			t.Fatalf("leaving by instance: %q, %v; want %q", id, err, joined[1].MemberID)
		}
		if d := g.Describe(); d.State != membership.Empty || len(d.Members) != 0 {
			t.Fatalf("got %s with %d members, want Empty", d.State, len(d.Members))
		}
		c := newClient(t, g)
		c.join(join("", ""))
		if j := c.joined(); j.Generation <= joined[0].Generation {
			t.Fatalf("generation %d after %d: it went back", j.Generation, joined[0].Generation)
		}
	})
}

func TestMemberWithoutASharedProtocolIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		stable(t, g, "")
		c := newClient(t, g)
		c.join(join("", "", "sticky"))
		if j := c.joined(); !errors.Is(j.Err, membership.ErrInconsistentProtocol) {
			t.Fatalf("got %v, want ErrInconsistentProtocol", j.Err)
		}
	})
}

func TestFirstRebalanceWaitsForMembersThatStartTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(time.Second, nil)
		defer g.Close()
		clients := make([]*client, 3)
		for i := range clients {
			clients[i] = newClient(t, g)
			clients[i].join(join("", ""))
			clients[i].waiting()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, c := range clients {
			if j := c.joined(); j.Err != nil || j.Generation != 1 {
				t.Fatalf("got %+v, want all three in generation 1", j)
			}
		}
	})
}

func TestConnectionThatEndsWhileJoiningLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := membership.New(0, nil)
		defer g.Close()
		clients, joined := stable(t, g, "")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan membership.Joined, 1)
		go func() { gone <- g.Join(ctx, join("", "")) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if j := <-gone; !errors.Is(j.Err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", j.Err)
		}
		clients[0].join(join(joined[0].MemberID, ""))
		time.Sleep(session + time.Second) // the ghost's session
		synctest.Wait()
		if j := clients[0].joined(); j.Err != nil || len(j.Members) != 1 {
			t.Fatalf("got %+v, want the group to go on without the ghost", j)
		}
	})
}
