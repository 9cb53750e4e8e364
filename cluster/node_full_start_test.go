package cluster_test

import (
	"errors"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// A node whose disk has no byte left starts and serves what it has, refuses appends, and goes on by itself when there is room.
func TestANodeStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	disks := []*vfs.Faulty{}
	c := clustertest.Start(t, 3, func(o *cluster.Options) {
		disks = append(disks, vfs.NewFaulty(vfs.OS{}))
		o.FS = disks[len(disks)-1]
	})
	create(t, c.Node(0), metadata.NewStream{Name: "t", Replication: 3})
	c.Append("t", 0, func() []byte { return storagetest.Batch("before") })
	for range 2 {
		for i := range 3 {
			c.Stop(i)
			disks[i].Limit(0)
		}
		for i := range 3 {
			c.Begin(i)
		}
		for i := range 3 {
			c.WaitReady(i)
		}
		if p, err := c.Node(c.Leader("t", 0)).Partition("t", 0); err != nil {
			t.Fatal(err)
		} else if b, err := p.Bounds(); err != nil || b.HighWatermark != 1 {
			t.Fatalf("on the full disk it has %+v: %v", b, err)
		}
	}
	c.Until("a large append to be refused", func() bool {
		return errors.Is(appendTo(t, c.Node(c.Leader("t", 0)), "t", 0, string(make([]byte, 3<<20))).Err, storage.ErrDiskFull)
	})
	for _, d := range disks {
		d.Heal()
	}
	c.Until("appends to go on", func() bool { return appendTo(t, c.Node(c.Leader("t", 0)), "t", 0, "after").Err == nil })
}
