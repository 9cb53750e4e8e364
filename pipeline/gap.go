package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func isOutOfRange(err error) bool { return errors.Is(err, kerr.OffsetOutOfRange) }

// gapError says that a sink's cursor is not in the journal any more.
func gapError(p Partition, cursor int64, err error) error {
	return &StopError{
		Code: "journal-gap", Where: fmt.Sprintf("%s@%d", p, cursor), Err: err,
		Fix: "accept the loss by deleting the sink's consumer group (it then starts at the oldest record kept), and raise journal.retain",
	}
}

// shorterError says that a journal has not kept what a sink has had from it.
func shorterError(p Partition, who string, cursor int64, err error) error {
	return &StopError{
		Code: "journal-shorter", Where: fmt.Sprintf("%s, cursor of %s at %d", p, who, cursor), Err: err,
		Fix: "the destination has had records that the journal does not have any more: restore the journal, or delete the sink's consumer group, so that it delivers all that is kept again (into another destination, if what was delivered must not stay)",
	}
}

// checkHistory holds what the journal has before the offsets of a mark against what was read there: after a loss it may
// have grown past them again.
func (j *Journal) checkHistory(ctx context.Context, group string, m mark) error {
	var ask kadm.OffsetForLeaderEpochRequest
	for p, epoch := range m.epochs {
		ask.Add(p.Stream, p.Number, epoch)
	}
	if len(ask) == 0 {
		return nil
	}
	known, err := j.admin.OffsetForLeaderEpoch(ctx, ask)
	if err != nil {
		return fmt.Errorf("asking what the journal has of the history of group %s: %w", group, err)
	}
	for p := range m.epochs {
		k, ok := known[p.Stream][p.Number]
		if !ok || k.Err != nil {
			return fmt.Errorf("asking what the journal has of the history of %s: %w", p, k.Err)
		}
		if k.EndOffset >= 0 && k.EndOffset < m.offsets[p] {
			return shorterError(p, "group "+group, m.offsets[p], fmt.Errorf("%w: what was appended under leader epoch %d ends at %d, and other records follow", errJournalShorter, k.LeaderEpoch, k.EndOffset))
		}
	}
	return nil
}

// checkRange holds the offsets that a sink wants to read from against what the journal
// holds: it never jumps silently.
func (j *Journal) checkRange(ctx context.Context, group string, from map[Partition]int64, streams ...string) error {
	starts, err := j.Starts(ctx, streams...)
	if err != nil {
		return err
	}
	ends, err := j.Ends(ctx, streams...)
	if err != nil {
		return err
	}
	for p, o := range from {
		switch {
		case o < starts[p]:
			return gapError(p, o, fmt.Errorf("the records up to %d have expired: %d are lost to this sink", starts[p], starts[p]-o))
		case o > ends[p]:
			return shorterError(p, "group "+group, o, fmt.Errorf("%w: it ends at %d", errJournalShorter, ends[p]))
		}
	}
	return nil
}
