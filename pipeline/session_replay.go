package pipeline

import (
	"context"
	"errors"
	"fmt"
)

// newReplaySession delivers the partitions between two offsets and keeps no cursor.
func newReplaySession(ctx context.Context, d *deliver, streams map[string]StreamInfo, parts []Partition, from, to map[Partition]int64) (_ *session, err error) {
	s := &session{
		d: d, owner: noOwner{}, streams: streams, parts: parts, once: true, over: true,
		deleted: map[Partition]string{},
	}
	if err := s.openSink(mark{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.sink.Close())
		}
	}()
	if err := s.checkFresh(ctx); err != nil {
		return nil, err
	}
	if s.seq, err = s.newSequencer(ctx, from, nil); err != nil {
		return nil, err
	}
	s.durable = mark{offsets: from}
	d.cursor.Store(&from)
	return s, s.startReader(ctx, from, to)
}

// checkFresh refuses a destination that holds the cursor of an earlier run: which
// stretch that was can't be told, and two of them would be mixed.
func (s *session) checkFresh(ctx context.Context) error {
	r, ok := s.sink.(Resumer)
	if !ok {
		return nil
	}
	s.resumer = true
	_, used, err := r.Resume(ctx)
	if err != nil {
		return fmt.Errorf("asking the destination for its cursor: %w", err)
	}
	if !used {
		return nil
	}
	return &StopError{
		Code: "replay-into-used", Where: "sink " + s.d.entry.Name,
		Err: errors.New("the destination already holds records and a cursor; a replay would mix or repeat them"),
		Fix: "give --into a name that is not used yet, or delete what an interrupted replay left there",
	}
}

// noOwner commits nothing.
type noOwner struct{ owner }

func (noOwner) commit(context.Context, map[Partition]cursor) error { return nil }
