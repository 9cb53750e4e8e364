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
		Fix: "accept the loss by giving the sink another name (it then starts at the oldest record kept; files want another path, too), and raise journal.retain",
	}
}

// shorterError says that a journal has not kept what a sink has had from it.
func shorterError(p Partition, who string, cursor int64, err error) error {
	return &StopError{
		Code: "journal-shorter", Where: fmt.Sprintf("%s, cursor of %s at %d", p, who, cursor), Err: err,
		Fix: "the destination has had records that the journal does not have any more: restore the journal, or give the sink another name, so that it delivers all that is kept again (into another destination, if what was delivered must not stay; files want another path in any case)",
	}
}

// checkHistory holds what the journal has before the offsets of a mark against what was read there: after a loss it may
// have grown past them again.
func (j *Journal) checkHistory(ctx context.Context, group string, m mark) error {
	lost, err := j.lostBefore(ctx, group, m)
	if lost == nil {
		return err
	}
	return shorterError(lost.partition, "group "+group, m.offsets[lost.partition], lost)
}

// lostHistory is a partition of which the journal has not kept what was there.
type lostHistory struct {
	partition  Partition
	epoch      int32
	keptBefore int64
}

func (l *lostHistory) Error() string {
	return fmt.Sprintf("%v: what was appended under leader epoch %d ends at %d, and other records follow", errJournalShorter, l.epoch, l.keptBefore)
}

// Is makes it one of errJournalShorter's.
func (l *lostHistory) Is(target error) bool { return target == errJournalShorter }

// lostBefore finds a partition of which the journal lacks what it had before an offset of the mark; nil if there is none.
func (j *Journal) lostBefore(ctx context.Context, group string, m mark) (*lostHistory, error) {
	var ask kadm.OffsetForLeaderEpochRequest
	for p, epoch := range m.epochs {
		ask.Add(p.Stream, p.Number, epoch)
	}
	if len(ask) == 0 {
		return nil, nil
	}
	known, err := j.admin.OffsetForLeaderEpoch(ctx, ask)
	if err != nil {
		return nil, fmt.Errorf("asking what the journal has of the history of group %s: %w", group, err)
	}
	for p := range m.epochs {
		k, ok := known[p.Stream][p.Number]
		if !ok || k.Err != nil {
			return nil, fmt.Errorf("asking what the journal has of the history of %s: %w", p, k.Err)
		}
		if k.EndOffset >= 0 && k.EndOffset < m.offsets[p] {
			return &lostHistory{partition: p, epoch: k.LeaderEpoch, keptBefore: k.EndOffset}, nil
		}
	}
	return nil, nil
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
