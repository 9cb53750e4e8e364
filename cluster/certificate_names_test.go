package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// Which names a certificate needs, for who is known and who is not.
func TestNamesOfACertificate(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	f, _, err := datadir.OpenFile(mem, "d")
	if err != nil {
		t.Fatal(err)
	}
	err = f.Update(func(i *datadir.Identity) {
		i.Peers = map[int32]string{2: "db2.example:9100", 3: "10.0.0.3:9100", 4: "[fd00::4]:9100"}
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{id: 1, meta: metadata.New(), file: f}
	for _, c := range []struct {
		name, says string
		cert       x509.Certificate
		refused    string // "" if it is not
	}{
		{"2", "db2.example:9100", x509.Certificate{DNSNames: []string{"db2.example"}}, ""},
		{"2", "db2.example:9200", x509.Certificate{DNSNames: []string{"DB2.example"}}, ""},
		{"2", "db2.example:9100", x509.Certificate{DNSNames: []string{"*.example"}}, ""},
		{"2", "db2.example:9100", x509.Certificate{DNSNames: []string{"db3.example"}}, "db3.example, not db2.example"},
		{"2", "db2.example:9100", x509.Certificate{DNSNames: []string{"*.other.example"}}, "not db2.example"},
		{"2", "db3.example:9100", x509.Certificate{DNSNames: []string{"db3.example"}}, "known to be at db2.example:9100"},
		{"2", "db3.example:9100", x509.Certificate{DNSNames: []string{"db2.example", "db3.example"}}, ""},
		{"2", "", x509.Certificate{DNSNames: []string{"db2.example"}}, ""},
		{"2", "", x509.Certificate{DNSNames: []string{"db3.example"}}, "known to be at db2.example:9100"},
		{"3", "10.0.0.3:9100", x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 3)}}, ""},
		{"3", "10.0.0.3:9100", x509.Certificate{DNSNames: []string{"10.0.0.3"}}, "10.0.0.3"},
		{"4", "[fd00::4]:9100", x509.Certificate{IPAddresses: []net.IP{net.ParseIP("fd00::4")}}, ""},
		{"5", "10.0.0.5:9100", x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 5)}}, ""}, // it has just joined
		{"5", "10.0.0.5:9100", x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 6)}}, "says that it is at 10.0.0.5:9100"},
	} {
		err := n.mayBe(c.name, c.says, tls.ConnectionState{PeerCertificates: []*x509.Certificate{&c.cert}})
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("node %s at %s with a certificate for %v %v: got %v, want %q", c.name, c.says, c.cert.DNSNames, c.cert.IPAddresses, err, c.refused)
		}
	}
	if err := n.mayBe("2", "db2.example:9100", tls.ConnectionState{}); err == nil {
		t.Error("who shows no certificate is let in")
	}
}
