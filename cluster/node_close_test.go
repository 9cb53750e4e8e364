package cluster_test

import (
	"errors"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage/storagetest"
)

// Whoever hears of an append may ask about its partition, also while the node closes, which waits for appends.
func TestAnAppendThatEndsWhileTheNodeClosesMayAskAboutItsPartition(t *testing.T) {
	n := openNode(t, t.TempDir())
	create(t, n, metadata.NewStream{Name: "s", Partitions: 1})
	p, err := n.Partition("s", 0)
	if err != nil {
		t.Fatal(err)
	}
	heard, closed := make(chan struct{}), make(chan error, 1)
	must(t, p.Append(t.Context(), storagetest.Batch("x"), func(cluster.Appended) {
		close(heard)
		for {
			p.LeaderEpoch()
			if _, err := p.Bounds(); errors.Is(err, cluster.ErrClosed) {
				return
			}
		}
	}))
	<-heard
	go func() { closed <- n.Close() }()
	select {
	case err := <-closed:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the node does not close")
	}
}
