package cluster

import (
	"errors"
	"maps"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// What a node refuses. The errors come wrapped; compare with errors.Is.
var (
	// ErrReadOnly: the journal has met an error and takes nothing any more until the
	// node is started anew; the cause is wrapped too.
	ErrReadOnly = errors.New("journal is read-only")
	// ErrClosed: the node is closing.
	ErrClosed = errors.New("node is closed")
)

// What the groups of a node's journals refuse.
var (
	// ErrNotLeader: another node leads the journal, or none; nothing was appended.
	ErrNotLeader = raftgroup.ErrNotLeader
	// ErrUnknownOutcome: what was appended may or may not be stored; an idempotent producer sends again and learns it.
	ErrUnknownOutcome = raftgroup.ErrUnknownOutcome
	// ErrGroupClosed: the journal is closed here, or has failed.
	ErrGroupClosed = raftgroup.ErrClosed
	// ErrObserver: the node is an observer, and it would change a copy.
	ErrObserver = raftgroup.ErrObserver
)

// wireErrors are the errors that nodes tell one another.
func wireErrors() metadata.ErrorCodes {
	codes := metadata.Refusals()
	maps.Copy(codes, metadata.ErrorCodes{
		"read-only": ErrReadOnly, "closed": ErrClosed, "not-leader": ErrNotLeader, "unknown-outcome": ErrUnknownOutcome,
		"observer": ErrObserver, "disk-full": storage.ErrDiskFull, "no-files": storage.ErrNoFiles, "batch-state": storage.ErrTxnState,
	})
	return codes
}
