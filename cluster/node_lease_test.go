package cluster_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// muteConn loses what is written while mute is set, and is broken from then on.
type muteConn struct {
	net.Conn
	mute   *atomic.Bool
	broken atomic.Bool
}

func (c *muteConn) Write(b []byte) (int, error) {
	if c.mute.Load() {
		c.broken.Store(true)
		return len(b), nil
	}
	if c.broken.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// A leader that nobody hears any more may answer for a moment what it knows. Who asks for the end of a partition is told
// nothing rather than an end that another leader may have moved: those who take this one for dead elect that at once.
func TestALeaderThatNobodyHearsTellsNoEnd(t *testing.T) {
	t.Parallel()
	var mutes [3]atomic.Bool
	place := 0
	c := clustertest.Start(t, 3, func(o *cluster.Options) {
		mute := &mutes[place]
		place++
		o.Network.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			return &muteConn{Conn: conn, mute: mute}, err
		}
	})
	untilVoters(t, c, 3)
	_, err := c.Node(0).CreateStream(t.Context(), metadata.NewStream{Name: "s"})
	must(t, err)
	fill(c, "s", "a", 3)
	c.Until("a leader to go on for a moment after it was cut off", func() bool {
		lead := c.Leader("s", 0)
		p, err := c.Node(lead).Partition("s", 0)
		must(t, err)
		if _, err := p.BoundsSince(time.Now()); err != nil {
			return false // it leads no more
		}
		mutes[lead].Store(true)
		defer mutes[lead].Store(false)
		if _, err := p.Bounds(); err != nil {
			return false // it was too long ago
		}
		if b, err := p.BoundsSince(time.Now()); err == nil {
			t.Errorf("a leader that nobody hears says that the partition is %+v", b)
		}
		// What lies above its end may have been acknowledged by the other: a reader must not be sent to the start.
		var outside *storage.RangeError
		if _, err := p.Read(cluster.ReadRequest{Offset: 1000}); err == nil || errors.As(err, &outside) {
			t.Errorf("a leader that nobody hears says of an offset that it does not have: %v", err)
		}
		return true
	})
}
