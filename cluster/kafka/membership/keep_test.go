package membership_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

// keptJoin is a member with a session of a second.
func keptJoin(id string) membership.Join {
	return membership.Join{
		MemberID: id, ClientID: "c", Session: time.Second, Rebalance: time.Second, Type: "consumer",
		Protocols: []membership.Protocol{{Name: "range", Metadata: []byte("topics")}},
	}
}

// What is kept before members get their assignment is what the next coordinator goes on with: the members stay who they are,
// those who died with the last one are missed, and the next generation follows.
func TestAGroupGoesOnWithWhatWasKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept *membership.Kept
		keep := func(_ context.Context, k *membership.Kept) error { kept = k; return nil }
		g := membership.New(0, keep)
		joined := g.Join(t.Context(), keptJoin(""))
		if joined.Err != nil {
			t.Fatal(joined.Err)
		}
		if kept != nil {
			t.Errorf("kept before there is an assignment: %+v", kept)
		}
		sync := membership.Sync{MemberID: joined.MemberID, Generation: joined.Generation, Assignments: map[string][]byte{joined.MemberID: []byte("all")}}
		if s := g.Sync(t.Context(), sync); s.Err != nil || string(s.Assignment) != "all" {
			t.Fatalf("synced: %+v", s)
		}
		g.Close()

		next := membership.Restore(*kept, 0, keep)
		defer next.Close()
		if d := next.Describe(); d.State != membership.Stable || len(d.Members) != 1 || string(d.Members[0].Assignment) != "all" || d.Members[0].ClientID != "c" {
			t.Errorf("the next coordinator has %+v", d)
		}
		if err := next.Heartbeat(joined.MemberID, "", joined.Generation); err != nil {
			t.Errorf("a heartbeat: %v", err)
		}
		if err := next.MayCommit(joined.MemberID, "", joined.Generation); err != nil {
			t.Errorf("a commit: %v", err)
		}
		if err := next.MayCommit(joined.MemberID, "", joined.Generation-1); !errors.Is(err, membership.ErrIllegalGeneration) {
			t.Errorf("a commit of another generation: %v", err)
		}
		begun := membership.Sync{MemberID: joined.MemberID, Generation: joined.Generation + 1}
		if s := next.Sync(t.Context(), begun); !errors.Is(s.Err, membership.ErrRebalanceInProgress) {
			t.Errorf("what is told who speaks of a generation that the last coordinator began: %v", s.Err)
		}
		time.Sleep(2 * time.Second) // of the bubble: the member is gone without a word
		synctest.Wait()
		if d := next.Describe(); d.State != membership.Empty {
			t.Errorf("a member that died with the coordinator is still there: %+v", d)
		}
		next.ForgetIfEmpty(t.Context())
		if kept != nil {
			t.Errorf("an empty group is still kept: %+v", kept)
		}
		if j := next.Join(t.Context(), keptJoin("")); j.Err != nil || j.Generation <= joined.Generation {
			t.Errorf("the generation after %d is %d, %v", joined.Generation, j.Generation, j.Err)
		}
	})
}

// What cannot be kept is not given out: the leader is told, and may try again.
func TestAnAssignmentThatIsNotKeptIsNotGivenOut(t *testing.T) {
	refused := errors.New("deposed")
	err := refused
	g := membership.New(0, func(context.Context, *membership.Kept) error { return err })
	defer g.Close()
	joined := g.Join(t.Context(), keptJoin(""))
	sync := membership.Sync{MemberID: joined.MemberID, Generation: joined.Generation, Assignments: map[string][]byte{joined.MemberID: []byte("all")}}
	if s := g.Sync(t.Context(), sync); !errors.Is(s.Err, refused) || s.Assignment != nil {
		t.Errorf("synced: %+v", s)
	}
	err = nil
	if s := g.Sync(t.Context(), sync); s.Err != nil || string(s.Assignment) != "all" {
		t.Errorf("synced again: %+v", s)
	}
}
