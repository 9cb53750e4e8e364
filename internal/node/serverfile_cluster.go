package node

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/certs"
)

// ClusterConfig is the section `cluster` of a server's file: the other nodes.
type ClusterConfig struct {
	Listen    string
	Advertise string
	Join      []string
	Rack      string
	Observe   []string
	// ObserveRetention is for how long an observer keeps records, in place of the streams' own settings.
	ObserveRetention time.Duration
	TLS              *ClusterTLS
}

// Fields declares the section.
func (c *ClusterConfig) Fields(d *configs.Fields) {
	d.String(&c.Listen, "listen", "", "Address where the other nodes connect, host:port.", addressOrNone)
	d.String(&c.Advertise, "advertise", "", "Address that the other nodes are told to use, where it differs, host:port.", addressOrNone)
	d.Strings(&c.Join, "join", nil, "Addresses of nodes of the cluster to join, any of them. An empty folder without them founds a cluster of one, which others can join. Later the folder knows its cluster, and the other nodes are looked for there, too, should they have moved; an address of another cluster ends a server whose folder founded one of its own.")
	d.String(&c.Rack, "rack", "", "Zone of the node: the replicas of a journal go to different ones, and consumers that name their own read there.")
	d.Strings(&c.Observe, "observe", nil, "Addresses of nodes, or of other observers, to copy from: makes this an observer, which is no node of the cluster, has a copy of everything, and only reads. The first that is up and not behind is taken. `listen` is then where further observers connect, and may be empty.")
	d.Duration(&c.ObserveRetention, "observe_retention", 0, "For how long an observer keeps records, in place of the streams' own `retention.ms` and `retention.bytes`; 0s goes by those.")
	configs.Optional(d, &c.TLS, "tls", "Encryption between nodes, with certificates on both sides; none where this is missing.")
}

// Check holds the rules between the fields.
func (c *ClusterConfig) Check(at *configs.At) {
	if c.observes() {
		c.checkObserver(at)
		return
	}
	if c.Listen == "" {
		at.Errorf("listen", "is missing: where do the other nodes connect?")
	}
	if c.ObserveRetention != 0 {
		at.Errorf("observe_retention", "has no effect without `observe`")
	}
	for i, addr := range c.Join {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			at.Item("join", i).Errorf("", "%q is not host:port", addr)
		}
	}
	if c.Advertise == "" && isWildcard(c.Listen) {
		at.Errorf("advertise", "is needed: %s is no address that other nodes can connect to", c.Listen)
	}
}

// isWildcard says that an address stands for all of the machine's.
func isWildcard(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || ip != nil && ip.IsUnspecified())
}

// ClusterTLS is the section `tls` of `cluster`.
type ClusterTLS struct {
	Cert string
	Key  string
	CA   string
}

// Fields declares the section.
func (t *ClusterTLS) Fields(d *configs.Fields) {
	d.String(&t.Cert, "cert", "", "File with the node's certificate chain, PEM; for its advertised host, by which the others know it, and for both client and server use. Read again when it changes.")
	d.String(&t.Key, "key", "", "File with the private key, PEM.")
	d.String(&t.CA, "ca", "", "File with the certificates that nodes' certificates must be signed by, PEM. Whoever has one of them can join: use an authority of the cluster's own. Read at a start.")
}

// Check wants all three files: encryption without knowing the other side would keep nobody out.
func (t *ClusterTLS) Check(at *configs.At) {
	if t.Cert == "" || t.Key == "" || t.CA == "" {
		at.Errorf("", "needs `cert`, `key` and `ca`")
	}
}

// config returns what both sides of a connection between nodes use.
func (t *ClusterTLS) config(log *slog.Logger) (*tls.Config, error) {
	cert, err := certs.Load(t.Cert, t.Key, log)
	if err != nil {
		return nil, err
	}
	pool, err := certs.Authorities(t.CA)
	if err != nil {
		return nil, fmt.Errorf("reading ca: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, GetCertificate: cert.Get, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert.Get(nil) },
	}, nil
}

// clusterAddress is where other nodes are told to connect; empty where there is no cluster.
func (f *ServerFile) clusterAddress() string {
	if f.Cluster == nil {
		return ""
	}
	return cmp.Or(f.Cluster.Advertise, f.Cluster.Listen)
}

// network is what the node needs of its cluster; nil where it is alone.
func (f *ServerFile) network(log *slog.Logger) (*cluster.Network, error) {
	if f.Cluster == nil || f.Cluster.observes() {
		return nil, nil
	}
	return f.Cluster.open(log)
}

// open starts to listen for the other nodes.
func (c *ClusterConfig) open(log *slog.Logger) (*cluster.Network, error) {
	n := &cluster.Network{Advertise: c.Advertise, Join: c.Join, Rack: c.Rack}
	if c.TLS != nil {
		config, err := c.TLS.config(log)
		if err != nil {
			return nil, fmt.Errorf("%w: cluster.tls: %w", ErrConfig, err)
		}
		n.TLS = config
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: cluster.listen: %w", ErrEnvironment, err)
	}
	n.Listener = l
	if c.TLS == nil && beyondLoopback(c.Listen) {
		log.Warn("ANYBODY who reaches this address can join the cluster, and read, change and delete everything: give `cluster` a `tls` section", "address", c.Listen)
	}
	return n, nil
}
