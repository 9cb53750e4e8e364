package metadata

import (
	"errors"
	"maps"
	"slices"

	"github.com/daybook-data/daybook/storage"
)

// WireError is an error that keeps its meaning on the way to another node.
type WireError struct {
	Code string `json:"code,omitempty"`
	Text string `json:"text"`
}

// ErrorCodes are errors that are told apart on the way to another node, by names that stay.
type ErrorCodes map[string]error

// Refusals are those of the refusals of the metadata.
func Refusals() ErrorCodes {
	return ErrorCodes{
		"stream-exists": ErrStreamExists, "stream-name-collides": ErrStreamNameCollides, "unknown-stream": ErrUnknownStream,
		"unknown-partition": ErrUnknownPartition, "stream-in-use": ErrStreamInUse, "not-more-partitions": ErrNotMorePartitions,
		"invalid-stream": ErrInvalidStream, "invalid-config": ErrInvalidConfig, "unknown-group": ErrUnknownGroup,
		"unknown-transaction": ErrUnknownTransaction, "producer-fenced": ErrProducerFenced, "transaction-state": ErrTransactionState,
		"conflict": ErrConflict, "invalid-replication": ErrInvalidReplication, "not-coordinator": ErrNotCoordinator,
		"unknown-member": ErrUnknownMember, "member-in-use": ErrMemberInUse, "removed": ErrRemoved, "unknown-user": ErrUnknownUser,
	}
}

// Encode gives an error its code, or none.
func (codes ErrorCodes) Encode(err error) *WireError {
	w := &WireError{Text: err.Error()}
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

// Decode is the error that was encoded, for errors.Is as well.
func (codes ErrorCodes) Decode(w *WireError) error {
	is, ok := codes[w.Code]
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
