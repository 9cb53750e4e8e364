package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/retry"
)

// settleWithin is how long a request waits for the metadata to take what it wants
// changed. It may be taken later all the same: clients ask again and learn it.
const settleWithin = 10 * time.Second

// The node that leads the metadata coordinates all groups and transactions: it has
// the newest state of both. Who belongs to a group is what its memory says, until there is
// another epoch: it then begins with what was kept in the metadata, each time a generation
// got its assignment.

// coordinate returns the epoch under which this node coordinates, or why it does not.
func (s *Server) coordinate() (epoch uint64, err error) {
	epoch, ok := s.node.Coordinator()
	switch {
	case ok:
		return epoch, nil
	case s.node.Controller() == s.node.ID():
		return 0, kerr.CoordinatorLoadInProgress
	}
	return 0, kerr.NotCoordinator
}

// followCoordinator lets go of what belongs to another epoch as soon as there is one:
// members that wait for an answer get it, and look for the node that coordinates now.
func (s *Server) followCoordinator(ctx context.Context) {
	for {
		changed := s.node.CoordinatorChanged()
		epoch, ok := s.node.Coordinator()
		s.groups.enter(epoch, ok)
		select {
		case <-changed:
			retry.Pause(ctx, 10*time.Millisecond) // a node that closes does not change any more
		case <-time.After(forgetGroupsEvery):
			s.forgetGroups(ctx)
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// soon returns a context that ends with the request, or when that has waited for the
// metadata for long.
func (c *call) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, settleWithin)
}

// within bounds what is left of the request by the time that its client gives it, or by
// settleWithin if it gives none. Its result ends the bound.
func (c *call) within(millis int32) context.CancelFunc {
	d := settleWithin
	if millis > 0 {
		d = max(time.Duration(millis)*time.Millisecond, time.Second)
	}
	ctx, cancel := context.WithTimeout(c.ctx, d)
	c.ctx = ctx
	return cancel
}

// coordinatorCode is errorCode for what the metadata was asked to do: whoever leads it is
// the coordinator.
func coordinatorCode(err error) int16 {
	if ke := (*kerr.Error)(nil); errors.As(err, &ke) {
		return ke.Code
	}
	switch {
	case errors.Is(err, metadata.ErrNotCoordinator):
		return kerr.NotCoordinator.Code
	case errors.Is(err, cluster.ErrNotLeader), errors.Is(err, cluster.ErrUnknownOutcome), errors.Is(err, cluster.ErrGroupClosed),
		errors.Is(err, cluster.ErrClosed), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return kerr.CoordinatorNotAvailable.Code
	}
	return errorCode(err)
}
