package kafka

import (
	"context"
	"errors"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka/membership"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// errorCode returns the protocol's number for an error of ours. The order
// matters only where one error wraps another.
func errorCode(err error) int16 {
	if err == nil {
		return 0
	}
	if ke := (*kerr.Error)(nil); errors.As(err, &ke) {
		return ke.Code
	}
	if code := storageCode(err); code != 0 {
		return code
	}
	for _, m := range []struct {
		err  error
		code *kerr.Error
	}{
		{metadata.ErrUnknownStream, kerr.UnknownTopicOrPartition},
		{metadata.ErrUnknownPartition, kerr.UnknownTopicOrPartition},
		{metadata.ErrTagged, kerr.InvalidTopicException},
		{cluster.ErrObserver, kerr.PolicyViolation},
		{metadata.ErrStreamExists, kerr.TopicAlreadyExists},
		{metadata.ErrStreamNameCollides, kerr.InvalidTopicException},
		{metadata.ErrNotMorePartitions, kerr.InvalidPartitions},
		{metadata.ErrInvalidStream, kerr.InvalidRequest},
		{metadata.ErrInvalidConfig, kerr.InvalidConfig},
		{metadata.ErrUnknownGroup, kerr.GroupIDNotFound},
		{metadata.ErrUnknownTransaction, kerr.InvalidProducerIDMapping},
		{metadata.ErrProducerFenced, kerr.InvalidProducerEpoch},
		{metadata.ErrTransactionState, kerr.InvalidTxnState},
		{metadata.ErrConflict, kerr.ConcurrentTransactions},
		{metadata.ErrNotCoordinator, kerr.NotCoordinator},
		{metadata.ErrInvalidReplication, kerr.InvalidReplicationFactor},
		{membership.ErrUnknownMember, kerr.UnknownMemberID},
		{membership.ErrMemberIDRequired, kerr.MemberIDRequired},
		{membership.ErrFencedInstance, kerr.FencedInstanceID},
		{membership.ErrIllegalGeneration, kerr.IllegalGeneration},
		{membership.ErrRebalanceInProgress, kerr.RebalanceInProgress},
		{membership.ErrInconsistentProtocol, kerr.InconsistentGroupProtocol},
		{membership.ErrInvalidSession, kerr.InvalidSessionTimeout},
		{membership.ErrGroupFull, kerr.GroupMaxSizeReached},
		{membership.ErrClosed, kerr.CoordinatorNotAvailable},
		{context.Canceled, kerr.CoordinatorNotAvailable},
		{context.DeadlineExceeded, kerr.RequestTimedOut},
	} {
		if errors.Is(err, m.err) {
			return m.code.Code
		}
	}
	return kerr.UnknownServerError.Code
}

// storageCode maps what a journal refuses. A full disk is a reason to try again;
// a journal that had to become read-only is not this node's to write any more.
func storageCode(err error) int16 {
	var (
		sequence *storage.SequenceError
		epoch    *storage.EpochError
		outside  *storage.RangeError
		damage   *storage.DamageError
	)
	switch {
	case errors.Is(err, cluster.ErrReadOnly):
		return kerr.KafkaStorageError.Code
	case errors.As(err, &sequence):
		return kerr.OutOfOrderSequenceNumber.Code
	case errors.As(err, &epoch):
		return kerr.InvalidProducerEpoch.Code
	case errors.As(err, &outside):
		return kerr.OffsetOutOfRange.Code
	case errors.As(err, &damage), errors.Is(err, syscall.EIO):
		return kerr.KafkaStorageError.Code
	case errors.Is(err, storage.ErrBatchTooLarge):
		return kerr.MessageTooLarge.Code
	case errors.Is(err, storage.ErrCorruptBatch):
		return kerr.CorruptMessage.Code
	case errors.Is(err, storage.ErrInvalidBatch):
		return kerr.InvalidRecord.Code
	case errors.Is(err, storage.ErrTxnState):
		return kerr.InvalidTxnState.Code
	case storage.Refused(err), errors.Is(err, syscall.ENOSPC):
		// Clients retry it; KAFKA_STORAGE_ERROR would make them look for another
		// leader first.
		return kerr.NotEnoughReplicas.Code
	case errors.Is(err, cluster.ErrUnknownOutcome) && !errors.Is(err, cluster.ErrGroupClosed):
		return kerr.RequestTimedOut.Code
	case errors.Is(err, storage.ErrClosed), errors.Is(err, cluster.ErrClosed),
		errors.Is(err, cluster.ErrGroupClosed), errors.Is(err, cluster.ErrNotLeader):
		return kerr.NotLeaderForPartition.Code
	}
	return 0
}

// errorText returns the message that goes with a code to clients that take one.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}
