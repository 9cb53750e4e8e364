package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// resumed is what a source goes on from.
type resumed struct {
	checkpoint sourceCheckpoint
	seen       seen
}

// resume finds out where the source goes on and what the journal holds behind its
// checkpoint.
//
// Guarantee 6.
func (in *ingest) resume(ctx context.Context, stream StreamInfo) (resumed, error) {
	group := sourceGroup(in.pipeline, in.entry.Name)
	c, ok, err := in.journal.loadSource(ctx, group, stream.Name)
	if err != nil {
		return resumed{}, err
	}
	all, err := in.journal.Ends(ctx, stream.Name)
	if err != nil {
		return resumed{}, err
	}
	ends := ofStream(all, stream.Name)
	kept, err := in.journal.Starts(ctx, stream.Name)
	if err != nil {
		return resumed{}, err
	}
	starts := ofStream(kept, stream.Name)
	switch {
	case !ok:
		in.log.Info("source starts as the file says: it has no checkpoint yet")
		c = sourceCheckpoint{StreamID: stream.ID, Ends: ends}
	case c.StreamID != stream.ID:
		in.log.Warn("the stream was deleted and made again since the source's checkpoint; what it had appended is gone", "stream", stream.Name)
		c.StreamID, c.Ends, c.Epochs = stream.ID, starts, nil
	}
	if err := in.checkEnds(&c, starts, ends, stream.Name); err != nil {
		return resumed{}, err
	}
	if err := in.checkHistory(ctx, &c, stream.Name, func(int32, int32) bool { return false }); err != nil {
		return resumed{}, err
	}
	r := resumed{checkpoint: c}
	from, err := in.startSeen(ctx, &r, stream, starts, ends)
	if err != nil {
		return resumed{}, err
	}
	if err := in.readTail(ctx, &r, stream, from, starts, ends); err != nil {
		return resumed{}, err
	}
	if !ok {
		// From now on a crash resumes here, and finds what was emitted before it.
		if r.checkpoint.Epochs, err = in.journal.epochs(ctx, stream.Name); err != nil {
			return resumed{}, err
		}
		if err := in.journal.saveSource(ctx, group, stream.Name, r.checkpoint); err != nil {
			return resumed{}, err
		}
	}
	return r, nil
}

// checkEnds holds the checkpoint's ends against what the journal has.
func (in *ingest) checkEnds(c *sourceCheckpoint, starts, ends map[int32]int64, stream string) error {
	if c.Ends == nil {
		c.Ends = map[int32]int64{}
	}
	for p, end := range ends {
		at, known := c.Ends[p]
		switch {
		case !known:
			c.Ends[p] = starts[p] // a partition added since
		case at > end:
			return in.shorterError(fmt.Sprintf("%s/%d: ends at %d, the source's checkpoint at %d", stream, p, end, at), errJournalShorter)
		case at < starts[p]:
			in.log.Warn("records behind the source's checkpoint have expired; those it had appended may come a second time", "stream", stream, "partition", p, "checkpoint", at, "start", starts[p])
			c.Ends[p] = starts[p]
			delete(c.Epochs, p) // what is before it is no matter of histories
		}
	}
	return nil
}

// shorterError says that the journal has not kept what the source had appended.
func (in *ingest) shorterError(where string, err error) error {
	return &StopError{
		Code: "journal-shorter", Where: where, Err: err,
		Fix: "restore the journal, or delete the consumer group " + sourceGroup(in.pipeline, in.entry.Name) + " to start the source as the file says",
	}
}

// checkHistory holds what the journal has below a checkpoint's ends against what was there when it was written: after a
// loss it may have grown past them again, by what others appended. Partitions of which holds says so are not looked at.
func (in *ingest) checkHistory(ctx context.Context, c *sourceCheckpoint, stream string, holds func(partition, epoch int32) bool) error {
	lost, err := in.journal.lostBefore(ctx, sourceGroup(in.pipeline, in.entry.Name), c.mark(stream, holds))
	if lost == nil {
		return err
	}
	return in.shorterError(fmt.Sprintf("%s: the source's checkpoint is at %d", lost.partition, c.Ends[lost.partition.Number]), lost)
}

// startSeen prepares the set of positions and says from where to fill it.
func (in *ingest) startSeen(ctx context.Context, r *resumed, stream StreamInfo, starts, ends map[int32]int64) (map[int32]int64, error) {
	d, ok := in.source.(Deduper)
	if !ok {
		r.seen = newSeenOnce(r.checkpoint.Pending)
		return r.checkpoint.Ends, nil
	}
	width := d.DedupeWindow().Microseconds()
	r.seen = newSeenWindow(width)
	from := map[int32]int64{}
	// A minute more makes up for clocks of writers that differ.
	since := time.Now().UnixMicro() - width - time.Minute.Microseconds()
	for p := range ends {
		first, err := in.journal.firstStamped(ctx, Partition{Stream: stream.Name, Number: p}, starts[p], r.checkpoint.Ends[p], since)
		if err != nil {
			return nil, err
		}
		from[p] = first
	}
	return from, nil
}

// readTail takes in the source's own positions from the given offsets on, and the
// greatest stamp of all writers.
func (in *ingest) readTail(ctx context.Context, r *resumed, stream StreamInfo, from, starts, ends map[int32]int64) error {
	highest, err := in.journal.highestFrontier(ctx, stream)
	if err != nil {
		return err
	}
	highest = max(highest, r.checkpoint.Stamp)
	names := interner{}
	note := func(k *kgo.Record) error {
		record := fromKafka(k, names)
		if header(k, HeaderStamp) != nil {
			highest = max(highest, record.Stamp)
		}
		if record.Source == in.entry.Name && record.Position != "" {
			r.seen.note(&record)
		}
		return nil
	}
	if err := in.journal.read(ctx, stream.Name, from, ends, note); err != nil {
		return err
	}
	// Where the tail is empty, the last record before it still has a stamp to go above.
	for p, end := range ends {
		if from[p] < end || end <= starts[p] {
			continue
		}
		k, err := in.journal.recordAt(ctx, Partition{Stream: stream.Name, Number: p}, end-1, end)
		if err != nil {
			return err
		}
		if k != nil && header(k, HeaderStamp) != nil {
			highest = max(highest, fromKafka(k, names).Stamp)
		}
	}
	r.checkpoint.Stamp = highest
	in.journal.stamper(stream.Name).raise(highest)
	return nil
}
