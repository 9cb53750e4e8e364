package disk

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// maxReserve bounds the reserve that nobody has set.
const maxReserve = 1 << 30

// Disk watches a node's disk. It decides whether appends are taken, and notices when the disk stops answering. It is safe
// for concurrent use.
type Disk struct {
	o      Options
	dir    string
	fs     vfs.FS
	watch  *vfs.Watch
	logger *slog.Logger

	mu     sync.Mutex // guards all below
	status Status
	stall  vfs.Pending // the one that was told
}

// New returns the disk on which a directory is. It knows nothing before it was measured.
func New(o Options, dir string, fs vfs.FS, logger *slog.Logger) *Disk {
	o.StallAfter = cmp.Or(o.StallAfter, 5*time.Second)
	o.CheckEvery = cmp.Or(o.CheckEvery, time.Second)
	return &Disk{o: o, dir: dir, fs: fs, watch: vfs.NewWatch(fs), logger: logger}
}

// FS is the file system to use, by which stalls are noticed.
func (d *Disk) FS() vfs.FS { return d.watch }

// Options are what New was told, with defaults.
func (d *Disk) Options() Options { return d.o }

// Measure looks how full the disk is. There is more to be free before appends are
// taken again than when they were refused, so that they do not come and go.
func (d *Disk) Measure() error {
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
func (d *Disk) resume() int64 { return d.status.Reserve + d.status.Reserve/4 }

// Admit refuses an append while the reserve is touched.
//
// Guarantee 4.
func (d *Disk) Admit() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.status
	if !s.Refusing {
		return nil
	}
	return fmt.Errorf("%w (%d bytes are free, %d are kept in reserve)", storage.ErrDiskFull, s.Free, s.Reserve)
}

// Lacks is how many bytes have to become free for appends to be taken again.
func (d *Disk) Lacks() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.status.Refusing {
		return 0
	}
	return max(0, d.resume()-d.status.Free)
}

// SetHeld notes how many bytes readers keep on the disk.
func (d *Disk) SetHeld(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.Held = n
}

// Status returns the status.
func (d *Disk) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Seen = d.watch.Totals()
	return s
}
