package node_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/servers"
)

// authority signs the certificates of nodes.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue makes a certificate for a node on this machine, and leaves it in NAME.pem and NAME.key.
func (a *authority) issue(name string) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", secret)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// nodeFile is the file of a server that has a certificate by the authority.
func (a *authority) nodeFile(n *servers.Node) string {
	return fmt.Sprintf(`version: 1
data: %s
http: %s
listeners:
  - address: %s
cluster:
  listen: %s
  join: [%s]
  tls: {cert: %[6]s/%[7]d.pem, key: %[6]s/%[7]d.key, ca: %[6]s/ca.pem}
`, n.Data(), n.HTTP, n.Kafka, n.Peer, n.Join, a.dir, n.ID)
}

// Nodes with certificates of their authority are a cluster, that works and survives a death; whoever comes with another
// one's, or with none, stays outside.
func TestNodesKnowEachOtherByCertificates(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	for id := range 3 {
		ours.issue(fmt.Sprint(id + 1))
	}
	c := startServers(t, servers.Options{Config: ours.nodeFile})
	client := clientOf(t, c, kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("t"))
	produce := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := client.ProduceSync(ctx, &kgo.Record{Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	produce()
	leader := leaderOf(t, c, "t", 0)
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	produce()
	restart(t, leader)
	for name, refused := range map[string]*tls.Config{
		"a certificate of another authority": {Certificates: []tls.Certificate{others.issue("stranger")}},
		"no certificate":                     {},
	} {
		if err := greet(t, c.Nodes()[0].Peer, ours, refused); err == nil {
			t.Errorf("who comes with %s is let in", name)
		}
	}
	if err := greet(t, c.Nodes()[0].Peer, ours, &tls.Config{Certificates: []tls.Certificate{ours.issue("friend")}}); err != nil {
		t.Errorf("who comes with a certificate of the cluster's authority: %v", err)
	}
	for _, n := range c.Nodes() {
		if text, err := os.ReadFile(n.Log()); err != nil || bytes.Contains(text, []byte("ANYBODY who reaches this address can join")) {
			t.Errorf("node %d warns of an open cluster, or has no log: %v", n.ID, err)
		}
	}
}

// greet connects to a node, and returns the alert by which it is sent away. Who is let in and says nothing hears nothing, until
// the node has waited for long enough.
func greet(t *testing.T, peer string, of *authority, config *tls.Config) error {
	t.Helper()
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AddCert(of.cert)
	d := tls.Dialer{Config: config}
	c, err := d.DialContext(t.Context(), "tcp", peer)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(make([]byte, 1)) // with TLS 1.3 a client hears that it is refused when it reads
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" {
		return err
	}
	return nil
}
