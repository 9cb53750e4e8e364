package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/daybook-data/daybook/storage"
)

// wireResult is a result on its way to another node, or in a snapshot. One field is set, or none.
type wireResult struct {
	Error       *wireError   `json:"error,omitempty"`
	Text        *string      `json:"text,omitempty"`
	Number      *int64       `json:"number,omitempty"`
	Stream      *Stream      `json:"stream,omitempty"`
	Transaction *Transaction `json:"transaction,omitempty"`
	Member      *Member      `json:"member,omitempty"`
}

func (r result) wire() (w wireResult) {
	if r.err != nil {
		return wireResult{Error: toWire(r.err)}
	}
	switch v := r.value.(type) {
	case nil:
	case string:
		w.Text = &v
	case int64:
		w.Number = &v
	case *Stream:
		w.Stream = v
	case *Transaction:
		w.Transaction = v
	case Member:
		w.Member = &v
	default:
		panic(fmt.Sprintf("cluster: metadata answered with a %T", r.value))
	}
	return w
}

func (w wireResult) result() result {
	switch {
	case w.Error != nil:
		return result{err: w.Error.err()}
	case w.Text != nil:
		return result{value: *w.Text}
	case w.Number != nil:
		return result{value: *w.Number}
	case w.Stream != nil:
		return result{value: w.Stream}
	case w.Transaction != nil:
		return result{value: w.Transaction}
	case w.Member != nil:
		return result{value: *w.Member}
	}
	return result{}
}

// wireError is an error that keeps its meaning on the way to another node.
type wireError struct {
	Code string `json:"code,omitempty"`
	Text string `json:"text"`
}

// errorCodes are the errors that are told apart, with names that stay.
func errorCodes() map[string]error {
	return map[string]error{
		"stream-exists": ErrStreamExists, "stream-name-collides": ErrStreamNameCollides, "unknown-stream": ErrUnknownStream,
		"unknown-partition": ErrUnknownPartition, "stream-in-use": ErrStreamInUse, "not-more-partitions": ErrNotMorePartitions,
		"invalid-stream": ErrInvalidStream, "invalid-config": ErrInvalidConfig, "unknown-group": ErrUnknownGroup,
		"unknown-transaction": ErrUnknownTransaction, "producer-fenced": ErrProducerFenced, "transaction-state": ErrTransactionState,
		"conflict": ErrConflict, "read-only": ErrReadOnly, "invalid-replication": ErrInvalidReplication,
		"not-coordinator": ErrNotCoordinator, "unknown-member": ErrUnknownMember, "member-in-use": ErrMemberInUse,
		"removed": ErrRemoved, "closed": ErrClosed, "not-leader": ErrNotLeader, "unknown-outcome": ErrUnknownOutcome,
		"disk-full": storage.ErrDiskFull, "unknown-user": ErrUnknownUser,
		"batch-state": storage.ErrTxnState, "observer": ErrObserver,
	}
}

func toWire(err error) *wireError {
	w := &wireError{Text: err.Error()}
	codes := errorCodes()
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if errors.Is(err, codes[code]) {
			w.Code = code
			return w
		}
	}
	var fenced *storage.EpochError
	if errors.As(err, &fenced) {
		w.Code = "producer-fenced"
	}
	return w
}

func (w *wireError) err() error {
	is, ok := errorCodes()[w.Code]
	if !ok {
		return errors.New(w.Text)
	}
	if is.Error() == w.Text {
		return is
	}
	return &remoteError{text: w.Text, is: is}
}

// remoteError is an error that another node had.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }

// Unwrap makes errors.Is know what it means.
func (e *remoteError) Unwrap() error { return e.is }
