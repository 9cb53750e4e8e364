package pipeline

import (
	"context"
	"errors"
	"fmt"

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
			return &StopError{
				Code: "journal-shorter", Where: fmt.Sprintf("%s ends at %d, the cursor of group %s is at %d", p, ends[p], group, o),
				Err: errJournalShorter, Fix: "restore the journal, or delete the consumer group to start anew",
			}
		}
	}
	return nil
}
