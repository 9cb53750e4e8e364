package transport

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("transport is closed")
	// ErrUnreachable says that there is no session to the peer now.
	ErrUnreachable = errors.New("peer cannot be reached")
	// ErrTimeout says that an answer or room did not come in time. The request may have been carried out.
	ErrTimeout = errors.New("peer did not answer in time")
	// ErrGroupExists refuses a second group with an id that is open.
	ErrGroupExists = errors.New("group is open already")

	errProtocol = errors.New("peer breaks the protocol")
)

// A RefusedError says that the node on the other side does not want this one.
type RefusedError struct {
	Address string
	Reason  string
	// Doubled says that another process is connected there as this node, Foreign that it is a node of another cluster, SetBack
	// that this node's folder is older than what the node was. Nodes of older builds say none of it.
	Doubled, Foreign, SetBack bool
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("node at %s refuses this one: %s", e.Address, e.Reason)
}
