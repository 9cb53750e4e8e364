package node

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/pipeline"
)

// diskOptions are those of a node; nil is the defaults.
func diskOptions(c *pipeline.DiskConfig) (o disk.Options, err error) {
	if c == nil {
		return o, nil
	}
	o = disk.Options{DeleteEarly: c.DeleteEarly, StallAfter: c.Stall, CacheBytes: c.Cache}
	if c.Stall < 0 {
		return o, fmt.Errorf("%w: --disk-stall %s: must be above zero", ErrConfig, c.Stall)
	}
	if o.ReserveBytes, o.ReservePercent, err = c.ReserveOf(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return o, nil
}

// health says why data does not move in the journals of this process.
func (s *stores) health() error {
	var errs []error
	for _, st := range s.all() {
		errs = append(errs, st.node.Health())
	}
	return errors.Join(errs...)
}

// diskCollector exports what the nodes of this process know of their disks.
type diskCollector struct {
	stores func() []*store
}

func diskDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("daybook_disk_"+name, help, []string{"dir"}, nil)
}

// Describe sends nothing: an unchecked collector.
func (c diskCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the numbers of now.
func (c diskCollector) Collect(ch chan<- prometheus.Metric) {
	for _, st := range c.stores() {
		d, c := st.node.Disk(), st.node.CacheStats()
		stalled := 0.0
		if d.Stalled != nil {
			stalled = d.Stalled.For.Seconds()
		}
		refusing := 0.0
		if d.Refusing {
			refusing = 1
		}
		send(ch, []string{st.dir},
			metric{diskDesc("free_bytes", "Bytes of the disk that are free."), gauge, float64(d.Free)},
			metric{diskDesc("reserve_bytes", "Bytes that must be free for appends to be taken."), gauge, float64(d.Reserve)},
			metric{diskDesc("refusing", "1 while appends are refused for want of space, else 0."), gauge, refusing},
			metric{diskDesc("held_bytes", "Bytes that retention would have removed if no sink held them, while appends are refused."), gauge, float64(d.Held)},
			metric{diskDesc("read_only_journals", "Journals that met an error of the disk and take nothing any more."), gauge, float64(d.ReadOnly)},
			metric{diskDesc("stalled_seconds", "For how long the disk has not answered; 0 while it does."), gauge, stalled},
			metric{diskDesc("stalls_total", "How often the disk did not answer within the limit."), counter, float64(d.Stalls)},
			metric{diskDesc("syncs_total", "Syncs of files and directories."), counter, float64(d.Seen.Syncs)},
			metric{diskDesc("sync_seconds_total", "Time that syncs took, all together."), counter, d.Seen.SyncTime.Seconds()},
			metric{diskDesc("cache_hit_bytes_total", "Bytes of batches that were in memory when they were read."), counter, float64(c.Hits)},
			metric{diskDesc("cache_miss_bytes_total", "Bytes of batches that were not in memory when they were read."), counter, float64(c.Misses)},
			metric{diskDesc("cache_bytes", "Bytes of memory that what was written and read fills now."), gauge, float64(c.Bytes)},
			metric{diskDesc("cache_budget_bytes", "Bytes of memory that what is written and read may fill."), gauge, float64(c.Budget)},
			metric{diskDesc("longest_seconds", "Longest time that a change of the disk took since the start."), gauge, d.Seen.Longest.Seconds()},
		)
	}
}
