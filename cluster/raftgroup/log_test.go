package raftgroup

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/cluster/transport"
)

// A node that is down is said by the transport, once, and not by each group again and again; all else is, and of which group.
func TestRaftSaysNothingOfNodesThatAreDown(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	l := (&raftLogger{to: slog.New(slog.NewTextHandler(&said, nil)), args: []any{"dir", "streams/x/0"}}).Named("raft")
	l.Error("failed to heartbeat to", "peer", "2", "error", fmt.Errorf("%w: connection refused", transport.ErrUnreachable))
	if said.Len() > 0 {
		t.Errorf("of a node that is down it said %s", said.String())
	}
	l.Warn("failed to get previous log", "previous-index", 10, "last-index", 0, "error", "log not found")
	l.Warn("Election timeout reached, restarting election")
	if said.Len() > 0 {
		t.Errorf("of a new member, and of most being down, it said %s", said.String())
	}
	l.Error("failed to heartbeat to", "peer", "2", "error", transport.ErrTimeout)
	if got := said.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "dir=streams/x/0") || !strings.Contains(got, "failed to heartbeat") {
		t.Errorf("of one that does not answer it said %q", got)
	}
}
