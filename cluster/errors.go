package cluster

import (
	"errors"
	"maps"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// What a node refuses. The errors come wrapped; compare with errors.Is.
var (
	// ErrReadOnly: the journal has met an error and takes nothing any more until the
	// node is started anew; the cause is wrapped too.
	ErrReadOnly = errors.New("journal is read-only")
	// ErrMembersDown: nodes are down that the change concerns.
	ErrMembersDown = errors.New("nodes are down")
	// ErrClosed: the node is closing.
	ErrClosed = errors.New("node is closed")
)

// wireErrors are the errors that nodes tell one another.
func wireErrors() metadata.ErrorCodes {
	codes := metadata.Refusals()
	maps.Copy(codes, metadata.ErrorCodes{
		"read-only": ErrReadOnly, "closed": ErrClosed, "not-leader": ErrNotLeader, "unknown-outcome": ErrUnknownOutcome,
		"observer": ErrObserver, "disk-full": storage.ErrDiskFull, "batch-state": storage.ErrTxnState,
	})
	return codes
}
