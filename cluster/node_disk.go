package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// DiskOptions say how a node treats its disk. Zero fields mean their defaults.
type DiskOptions struct {
	// ReserveBytes is how much must be free for appends to be taken: 5 % of the
	// disk, but at most 1 GiB, by default; negative for none. What the node writes
	// for itself, commits of groups among it, may use the reserve.
	ReserveBytes int64
	// ReservePercent is the same as a part of the disk, if above 0.
	ReservePercent float64
	// DeleteEarly removes old segments before their time while the reserve is
	// touched. What a reader holds stays.
	DeleteEarly bool
	// StallAfter is after how long an operation that has not returned is taken for
	// a disk that has stopped answering; 5 s by default.
	StallAfter time.Duration
	// CacheBytes bounds the memory that what was written and read may fill, over
	// all journals; storage.DefaultCacheBytes if 0.
	CacheBytes int64
	// CheckEvery is how often the disk is looked at; 1 s by default.
	CheckEvery time.Duration
}

// maxReserve bounds the reserve that nobody has set.
const maxReserve = 1 << 30

// DiskStatus is what a node knows of its disk.
type DiskStatus struct {
	Free    int64 `json:"free_bytes"`
	Total   int64 `json:"total_bytes"`
	Reserve int64 `json:"reserve_bytes"`
	// Refusing says that appends are refused until there is more room.
	Refusing bool `json:"refusing,omitempty"`
	// Held is how many bytes retention would have removed from the disk by now if
	// no reader held them. It is known while appends are refused.
	Held int64 `json:"held_bytes,omitempty"`
	// Stalled is what has not returned for longer than the limit; nil if nothing.
	Stalled *DiskStall `json:"stalled,omitempty"`
	// ReadOnly is how many journals have met an error and take nothing any more.
	ReadOnly int `json:"read_only_journals,omitempty"`
	// Stalls counts them since the start.
	Stalls int64           `json:"stalls"`
	Seen   vfs.WatchTotals `json:"-"`
}

// DiskStall is an operation that the disk has not answered.
type DiskStall struct {
	Op   string        `json:"op"`
	File string        `json:"file"`
	For  time.Duration `json:"for_ns"`
}

// disk watches a node's disk. It decides whether appends are taken, and notices
// when the disk stops answering.
type disk struct {
	o     DiskOptions
	dir   string
	fs    vfs.FS
	watch *vfs.Watch

	saidFull, saidUnknown bool // what was logged last; used by lookAtSpace alone

	mu     sync.Mutex // guards all below
	status DiskStatus
	stall  vfs.Pending // the one that was told
}

func newDisk(o DiskOptions, dir string, fs vfs.FS) *disk {
	if o.StallAfter == 0 {
		o.StallAfter = 5 * time.Second
	}
	if o.CheckEvery == 0 {
		o.CheckEvery = time.Second
	}
	d := &disk{o: o, dir: dir, fs: fs, watch: vfs.NewWatch(fs)}
	return d
}

// measure looks how full the disk is. There is more to be free before appends are
// taken again than when they were refused, so that they do not come and go.
func (d *disk) measure() error {
	free, total, err := d.fs.Space(d.dir)
	if err != nil {
		return fmt.Errorf("asking how full the disk is: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	reserve := d.o.ReserveBytes
	if d.o.ReservePercent > 0 {
		reserve = int64(float64(total) * d.o.ReservePercent / 100)
	} else if reserve == 0 {
		reserve = min(maxReserve, total/20)
	}
	reserve = max(reserve, 0)
	s := &d.status
	s.Free, s.Total, s.Reserve = free, total, reserve
	if s.Refusing {
		s.Refusing = free < d.resume()
	} else {
		s.Refusing = free < reserve
	}
	if !s.Refusing {
		s.Held = 0
	}
	return nil
}

// resume is how much has to be free for appends to be taken again. The caller
// holds mu.
func (d *disk) resume() int64 { return d.status.Reserve + d.status.Reserve/4 }

// admit refuses an append while the reserve is touched.
//
// Guarantee 4.
func (d *disk) admit() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.status
	if !s.Refusing {
		return nil
	}
	return fmt.Errorf("%w (%d bytes are free, %d are kept in reserve)", storage.ErrDiskFull, s.Free, s.Reserve)
}

// lacks is how many bytes have to become free for appends to be taken again.
func (d *disk) lacks() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.status.Refusing {
		return 0
	}
	return max(0, d.resume()-d.status.Free)
}

func (d *disk) setHeld(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.Held = n
}

// now returns the status.
func (d *disk) now() DiskStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Seen = d.watch.Totals()
	return s
}

// checkStall notes whether an operation has been on its way for too long. It
// returns the one that is news, and the one that was told and has returned.
func (d *disk) checkStall(now time.Time) (news, over *vfs.Pending) {
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
	d.status.Stalled = &DiskStall{Op: string(p.Op), File: p.Name, For: now.Sub(p.Since)}
	return news, over
}
