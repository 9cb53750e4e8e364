package transport_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// A node of another cluster, with the id of this one, or at the address of another node is turned away, and both sides
// say why.
func TestStrangersAreRefusedLoudly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster, dialer, asked string
		want                   []string
	}{
		"cluster": {"other", "x", "a", []string{`cluster "other"`, `this node to "test"`}},
		"same id": {"test", "a", "b", []string{"every node needs an id of its own"}},
		"address": {"test", "x", "y", []string{`is "a", expected "y"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newPipes()
			var here, there logs
			n.node(t, "a", transport.Options{Logger: here.logger()})
			n.listen("elsewhere")
			x, err := transport.Open(transport.Options{
				Cluster: c.cluster, Node: c.dialer, Listener: n.listen("x"), Dial: n.dial, Logger: there.logger(),
			})
			must(t, err)
			defer x.Close()
			x.SetPeer(c.asked, "a")
			until(t, "an error", func() bool { return x.Stats().Peers[c.asked].Err != nil })
			got := x.Stats().Peers[c.asked]
			for _, w := range c.want {
				if got.Up || !strings.Contains(got.Err.Error(), w) {
					t.Errorf("got %+v, want an error with %q", got, w)
				}
			}
			if name == "address" {
				return
			}
			var refused *transport.RefusedError
			if !errors.As(got.Err, &refused) {
				t.Errorf("got %v, want a RefusedError", got.Err)
			}
			until(t, "both sides to say it", func() bool {
				return here.has("level=WARN", "is no node of this cluster") && there.has("level=ERROR", "a node refuses this one")
			})
		})
	}
}

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{cert, key}
}

// config is the mutual TLS of a node.
func (a *authority) config(t *testing.T, node string) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: node}, DNSNames: []string{node}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

// named lets a node call itself what its certificate says.
func named(node, _ string, state tls.ConnectionState) error {
	if got := state.PeerCertificates[0].Subject.CommonName; got != node {
		return fmt.Errorf("it is made out to %q", got)
	}
	return nil
}

// Nodes prove to each other who they are; whoever cannot is refused, and everything else works as without.
func TestNodesAuthenticateEachOther(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	open := func(node string, c *tls.Config) (*transport.Transport, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		tr, err := transport.Open(transport.Options{Cluster: "test", Node: node, Listener: l, TLS: c, Authenticate: named})
		must(t, err)
		t.Cleanup(func() { _ = tr.Close() })
		return tr, l.Addr().String()
	}
	a, _ := open("a", ca.config(t, "a"))
	b, atB := open("b", ca.config(t, "b"))
	a.SetPeer("b", atB)
	until(t, "a to reach b", func() bool { return a.Stats().Peers["b"].Up })
	ga, f := openGroup(t, a), follow(t, openGroup(t, b), nil)
	j, logs := source(t, 10, 3<<20, 20)
	ga.Bind(j, "a", membersOf("a", "b", "c"))
	var resp raft.AppendEntriesResponse
	must(t, ga.AppendEntries("b", "b", appendOf(logs, 0, 0), &resp))
	got, _ := f.got()
	entries := 0
	for _, r := range got {
		entries += len(r.Entries)
	}
	if !resp.Success || entries != 3 {
		t.Errorf("got %+v, %d entries", resp, entries)
	}
	for name, c := range map[string]*tls.Config{
		"no TLS": nil, "another authority": stranger.config(t, "x"), "another node's certificate": ca.config(t, "a"),
		"no certificate": {RootCAs: ca.config(t, "x").RootCAs},
	} {
		o := b.Stats().Refused
		x, _ := open("x", c)
		x.SetPeer("b", atB)
		until(t, name+" to be refused", func() bool { return b.Stats().Refused > o && x.Stats().Peers["b"].Err != nil })
		if s := x.Stats().Peers["b"]; s.Sessions > 0 && s.Up {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}
