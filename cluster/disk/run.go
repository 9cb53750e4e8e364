package disk

import (
	"context"
	"sync"
	"time"

	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/internal/vfs"
)

// Run looks at the disk until ctx ends, and logs what an operator should know, once each time it begins and ends. full is
// called when appends begin to be refused, stalled when the disk stops answering.
func (d *Disk) Run(ctx context.Context, full, stalled func()) {
	var all sync.WaitGroup
	all.Go(func() {
		said := said{}
		d.each(ctx, func() { d.lookAtSpace(&said, full) })
	})
	all.Go(func() { d.each(ctx, func() { d.lookAtStalls(stalled) }) }) // apart, as the other may have to wait for a disk that does not answer
	all.Wait()
}

func (d *Disk) each(ctx context.Context, look func()) {
	for ok := true; ok; ok = retry.Pause(ctx, d.o.CheckEvery) {
		look()
	}
}

// said is what was logged last.
type said struct{ full, unknown bool }

func (d *Disk) lookAtSpace(said *said, full func()) {
	err := d.Measure()
	if err != nil && !said.unknown {
		d.logger.Warn("it is not known how full the disk is; appends go by what was known last", "error", err)
	}
	said.unknown = err != nil
	s := d.Status()
	switch {
	case s.Refusing == said.full:
	case s.Refusing:
		d.logger.Error("the disk is nearly full: appends are refused, clients wait; free disk space, lower retention, or let sinks catch up",
			"dir", d.dir, "free", s.Free, "reserve", s.Reserve)
		full()
	default:
		d.logger.Info("the disk has room again: appends go on", "dir", d.dir, "free", s.Free)
	}
	said.full = s.Refusing
}

func (d *Disk) lookAtStalls(stalled func()) {
	news, over := d.checkStall(time.Now())
	if over != nil {
		d.logger.Warn("the disk answers again", "op", string(over.Op), "file", over.Name, "after", time.Since(over.Since).Round(time.Millisecond))
	}
	if news != nil {
		d.logger.Error("the disk does not answer: what waits for it waits", "op", string(news.Op), "file", news.Name,
			"since", news.Since.Format(time.RFC3339), "for", time.Since(news.Since).Round(time.Millisecond))
		stalled()
	}
}

// checkStall notes whether an operation has been on its way for too long. It
// returns the one that is news, and the one that was told and has returned.
func (d *Disk) checkStall(now time.Time) (news, over *vfs.Pending) {
	p, ok := d.watch.Oldest()
	stalled := ok && now.Sub(p.Since) >= d.o.StallAfter
	d.mu.Lock()
	defer d.mu.Unlock()
	told := d.stall
	if !told.Since.IsZero() && (!stalled || p != told) {
		over, d.stall, d.status.Stalled = &told, vfs.Pending{}, nil
	}
	if !stalled {
		return nil, over
	}
	if d.stall.Since.IsZero() {
		d.stall, news = p, &p
		d.status.Stalls++
	}
	d.status.Stalled = &Stall{Op: string(p.Op), File: p.Name, For: now.Sub(p.Since)}
	return news, over
}
