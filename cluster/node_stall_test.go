package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// A leader whose disk does not answer steps aside: another one takes over, and what was appended meanwhile stays when the
// disk answers again.
func TestAStalledLeaderStepsAside(t *testing.T) {
	t.Parallel()
	var disks [3]*vfs.Faulty
	place := 0
	c, s := replicated(t, 3, "s", func(o *cluster.Options) {
		disks[place] = vfs.NewFaulty(vfs.OS{})
		o.FS, o.Disk = disks[place], disk.Options{CheckEvery: 10 * time.Millisecond, StallAfter: 200 * time.Millisecond}
		place++
	})
	acked := fill(c, "s", "a", 5)
	was := c.Leader("s", 0)
	release, stalled := make(chan struct{}), make(chan struct{})
	released := false
	defer func() {
		if !released {
			close(release)
		}
	}()
	disks[was].Inject(vfs.Fault{Op: vfs.OpSync, Name: s.ID.String(), Stall: release, Stalled: stalled})
	p, err := c.Node(was).Partition("s", 0)
	must(t, err)
	stuck := make(chan cluster.Appended, 1)
	must(t, p.Append(context.Background(), storagetest.Batch("stuck"), func(a cluster.Appended) { stuck <- a }))
	<-stalled
	c.Until("another node to lead", func() bool {
		for i, n := range c.Nodes() {
			if i == was {
				continue
			}
			p, err := n.Partition("s", 0)
			if err != nil {
				continue
			}
			if _, err := p.Bounds(); err == nil {
				return true
			}
		}
		return false
	})
	for i := range 5 {
		value := string(rune('v' + i))
		offset := int64(-1)
		c.Until("an append to the one that leads now", func() bool {
			for at, n := range c.Nodes() {
				if at == was {
					continue
				}
				if a, err := tryAppend(n, value); err == nil && a.Err == nil {
					offset = a.BaseOffset
					return true
				}
			}
			return false
		})
		acked[offset] = value
	}
	released = true
	close(release)
	if a := <-stuck; a.Err == nil {
		acked[a.BaseOffset] = "stuck" // it was on the others in time
	}
	for i := range 3 {
		wantReplica(t, c, i, "s", acked)
	}
}

// tryAppend appends a record to s on a node, which may not lead.
func tryAppend(n *cluster.Node, value string) (a cluster.Appended, err error) {
	p, err := n.Partition("s", 0)
	if err != nil {
		return a, err
	}
	done := make(chan cluster.Appended, 1)
	if err := p.Append(context.Background(), storagetest.Batch(value), func(a cluster.Appended) { done <- a }); err != nil {
		return a, err
	}
	return <-done, nil
}
