package cluster_test

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/internal/cable"
)

// A certificate of the cluster's authority, for another host, does not make its holder another node, nor move one to where
// its holder is. A node that moves has one for both hosts.
func TestACertificateMakesNobodyAnotherNode(t *testing.T) {
	t.Parallel()
	ca := clustertest.NewAuthority(t)
	c := clustertest.Start(t, 0)
	log := &lines{}
	options := func(listen string, join []string, names ...string) cluster.Options {
		return cluster.Options{
			Dir: t.TempDir(), SegmentBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(log, nil)),
			Network: &cluster.Network{Timeout: time.Second, Advertise: listen + ":0", Join: join, TLS: ca.Config(names...)},
		}
	}
	for i, host := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		var join []string
		if i > 0 {
			join = []string{c.Address(0)}
		}
		c.AddWith(options(host, join, host))
	}
	knows(c, 3)
	untilVoters(t, c, 3)
	was := c.Address(2)
	c.Stop(2)

	thief := options("127.0.0.9", []string{c.Address(0), c.Address(1)}, "127.0.0.9")
	thief.Dir = c.Dir(2)
	place := c.AddStopped(thief)
	n := c.Begin(place)
	c.Until("both others to refuse who comes with a certificate for another host", func() bool {
		text := log.String()
		refusal := "its certificate is not that of node 3: node 3 is known to be at " + was + ": x509: certificate is valid for 127.0.0.9, not 127.0.0.3"
		return strings.Count(text, refusal) >= 2
	})
	for i := range 2 {
		if c.Node(i).Up(3) {
			t.Errorf("node %d has taken it for node 3", i+1)
		}
	}
	select {
	case <-n.Ready():
		t.Error("it became node 3")
	default:
	}
	c.Stop(place)

	moved := thief
	moved.Network = &cluster.Network{Timeout: time.Second, Advertise: "127.0.0.9:0", Join: thief.Network.Join, TLS: ca.Config("127.0.0.9", "127.0.0.3")}
	place = c.AddWith(moved)
	c.Until("the others to know where the node is now", func() bool {
		for i := range 2 {
			for _, m := range c.Node(i).Members() {
				if m.ID == 3 && (m.Address != c.Address(place) || !c.Node(i).Up(3)) {
					return false
				}
			}
		}
		return true
	})
}

// Who joins has a certificate for the address that it gives.
func TestWhoJoinsHasACertificateForItsAddress(t *testing.T) {
	t.Parallel()
	ca, log := clustertest.NewAuthority(t), &lines{}
	c := clustertest.Start(t, 0)
	options := func(listen string, join []string, name string) cluster.Options {
		return cluster.Options{
			Dir: t.TempDir(), SegmentBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(log, nil)),
			Network: &cluster.Network{Timeout: time.Second, Advertise: listen + ":0", Join: join, TLS: ca.Config(name)},
		}
	}
	c.AddWith(options("127.0.0.1", nil, "127.0.0.1"))
	wrong, right := ca.Config("127.0.0.3"), ca.Config("127.0.0.2")
	var now atomic.Pointer[tls.Certificate]
	now.Store(&wrong.Certificates[0])
	right.Certificates = nil
	right.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return now.Load(), nil }
	right.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return now.Load(), nil }
	o := options("127.0.0.2", []string{c.Address(0)}, "127.0.0.2")
	o.Network.TLS, o.Network.Listener = right, cable.Listen(t, "127.0.0.2:0")
	o.Network.Advertise = o.Network.Listener.Addr().String()
	ended := make(chan error, 1)
	go func() {
		n, err := cluster.Open(o)
		if err == nil {
			err = n.Close()
		}
		ended <- err
	}()
	c.Until("it to be refused", func() bool {
		return strings.Contains(log.String(), "gives "+o.Network.Advertise+" as its address: x509: certificate is valid for 127.0.0.3, not 127.0.0.2")
	})
	if n := len(c.Node(0).Members()); n != 1 {
		t.Errorf("the cluster has %d members", n)
	}
	now.Store(&ca.Config("127.0.0.2").Certificates[0])
	if err := <-ended; err != nil {
		t.Errorf("with a certificate for its address: %v", err)
	}
}
