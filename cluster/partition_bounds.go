package cluster

import (
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// Bounds are the ends of a partition.
type Bounds struct {
	Start         int64 // first offset that can be read
	LastStable    int64 // below it every transaction is decided
	HighWatermark int64 // one behind the last record that can be read
}

// Bounds returns the partition's ends.
func (p *Partition) Bounds() (Bounds, error) {
	return p.bounds(false)
}

// Known is Bounds of a replica that need not lead: up to what it knows to be committed.
func (p *Partition) Known() (Bounds, error) { return p.bounds(true) }

// BoundsSince is Bounds with everything that any leader had acknowledged at a time, which is not in the future. Bounds may
// lack what another leader has acknowledged that was elected a moment ago.
func (p *Partition) BoundsSince(at time.Time) (Bounds, error) {
	g, err := p.handle.open()
	if err == nil {
		err = g.ConfirmSince(at)
	}
	if err != nil {
		return Bounds{}, err
	}
	return p.boundsOf(g.Journal()), nil
}

func (p *Partition) bounds(follower bool) (Bounds, error) {
	j, err := p.handle.reader(follower)
	if err != nil {
		return Bounds{}, err
	}
	return p.boundsOf(j), nil
}

func (p *Partition) boundsOf(j *storage.Journal) (b Bounds) {
	b.Start, b.HighWatermark = j.Bounds(uint32(p.number))
	b.LastStable = min(j.LastStable(uint32(p.number)), b.HighWatermark)
	return b
}

// DeleteBefore makes offset the first that can be read, on all replicas, and
// returns what is the first one now. Nothing is deleted before that is agreed: no
// later leader shows it again. The bytes go with their segments.
func (p *Partition) DeleteBefore(offset int64) (int64, error) {
	if p.tag != "" {
		return -1, metadata.ErrTagged
	}
	if p.handle.all.observes {
		return -1, ErrObserver
	}
	if _, err := p.handle.reader(false); err != nil {
		return -1, err
	}
	g, err := p.handle.open()
	if err != nil {
		return -1, err
	}
	start, err := g.TrimBefore(uint32(p.number), offset)
	return start, readOnly(g, err)
}
