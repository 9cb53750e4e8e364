package node

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/pipeline"
)

// ServerFile is the file of `daybook server --config`: where it listens, and who may
// do what.
type ServerFile struct {
	Version       int
	Data          string
	HTTP          string
	Disk          pipeline.DiskConfig
	Cluster       *ClusterConfig
	Listeners     []ListenerConfig
	Users         []UserConfig
	Authorization *AuthorizationConfig
}

// LoadServerFile reads a server's file. The error is of type configs.Problems where the
// file is there but not right, and ErrConfig where it is not there.
func LoadServerFile(path string) (*ServerFile, error) {
	f := &ServerFile{}
	if err := configs.Load(path, f); err != nil {
		return nil, readable("server", err)
	}
	return f, nil
}

// Fields declares the top level of the file.
func (f *ServerFile) Fields(d *configs.Fields) {
	d.Int(&f.Version, "version", 1, "Version of the file's form: 1.", configs.Required, configs.Range(1, 1))
	d.String(&f.Data, "data", "", "Folder of the journal; made if missing.", configs.Required, configs.NotEmpty)
	d.String(&f.HTTP, "http", "127.0.0.1:9600", "Address for /metrics, /live and /ready, host:port; empty for none.", addressOrNone)
	d.Sub(&f.Disk, "disk", "What happens as the disk fills, or does not answer.")
	configs.Optional(d, &f.Cluster, "cluster", "The other nodes: with this section the journal is replicated. docs/cluster.md explains it.")
	configs.ListOf(d, &f.Listeners, "listeners", "Where Kafka clients are served.", func() *ListenerConfig { return &ListenerConfig{} }, configs.Required)
	configs.ListOf(d, &f.Users, "users", "Users who are made, or given this password, at every start. Others are made and deleted by Kafka's admin tools; removing one here does not delete it.", func() *UserConfig { return &UserConfig{} })
	configs.Optional(d, &f.Authorization, "authorization", "With this section every request is judged by the ACLs that Kafka's admin tools keep, and what none allows is refused. Without it whoever gets in may do everything.")
}

// addressOrNone wants an address of the form host:port, or nothing.
var addressOrNone = configs.Func("host:port, or empty", func(addr string) error {
	if _, _, err := net.SplitHostPort(addr); addr != "" && err != nil {
		return fmt.Errorf("%q is not host:port", addr)
	}
	return nil
})

// Check holds the rules between the sections.
func (f *ServerFile) Check(at *configs.At) {
	if len(f.Listeners) == 0 {
		at.Errorf("listeners", "must not be empty")
	}
	seen := map[string]bool{}
	for i, l := range f.Listeners {
		if seen[l.Address] {
			at.Item("listeners", i).Errorf("address", "%s stands twice", l.Address)
		}
		seen[l.Address] = true
	}
	f.checkNames(at)
	if f.Cluster != nil && f.Cluster.observes() && len(f.Users) > 0 {
		at.Errorf("users", "come to an observer from its cluster: make them there")
	}
	named := map[string]bool{}
	for i, u := range f.Users {
		if named[u.Name] {
			at.Item("users", i).Errorf("name", "user %q stands twice", u.Name)
		}
		named[u.Name] = true
	}
}

// checkNames wants each listener to have a name of its own, and in a cluster an address
// that the other nodes' clients can be told.
func (f *ServerFile) checkNames(at *configs.At) {
	seen := map[string]bool{}
	for i := range f.Listeners {
		l, name := &f.Listeners[i], f.listenerName(i)
		if seen[name] {
			at.Item("listeners", i).Errorf("name", "%q stands twice", name)
		}
		seen[name] = true
		if f.Cluster != nil && !f.Cluster.observes() && l.Advertise == "" && isWildcard(l.Address) {
			at.Item("listeners", i).Errorf("advertise", "is needed in a cluster: %s is no address that clients of another node can be told", l.Address)
		}
	}
}

// listenerName is the name of a listener: its place in the list where it has none.
func (f *ServerFile) listenerName(i int) string {
	return cmp.Or(f.Listeners[i].Name, strconv.Itoa(i+1))
}

// ListenerConfig is one element of `listeners`.
type ListenerConfig struct {
	Name           string
	Address        string
	Advertise      string
	SASL           []string
	OAuth          *ListenerOAuth
	Reauthenticate time.Duration
	TLS            *ListenerTLS
}

// Fields declares a listener.
func (l *ListenerConfig) Fields(d *configs.Fields) {
	d.String(&l.Address, "address", "", "Address to listen on, host:port.", configs.Required, configs.HostPort)
	d.String(&l.Advertise, "advertise", "", "Address that clients are told to use, where it differs, host:port.", addressOrNone)
	d.String(&l.Name, "name", "", "Name of the listener. In a cluster clients are told the addresses of the other nodes' listeners of the same name. Empty is its place in the list: 1, 2, ...")
	d.Strings(&l.SASL, "sasl", nil, "Ways to log in, of which a client must take one: plain, scram-sha-256, scram-sha-512, oauthbearer. Empty asks nobody to log in.",
		configs.Pattern("plain|scram-sha-256|scram-sha-512|oauthbearer", "plain, scram-sha-256, scram-sha-512 or oauthbearer"))
	configs.Optional(d, &l.OAuth, "oauth", "Which tokens log a client in, by `sasl: [oauthbearer]`. A login ends with its token; clients bring a new one by themselves.")
	d.Duration(&l.Reauthenticate, "reauthenticate", 0, "After how long a client must log in again; clients do so by themselves. 0s is never: a deleted user then stays until it disconnects.")
	configs.Optional(d, &l.TLS, "tls", "Encryption of the connections; none where this is missing.")
}

// Check holds the rules between the fields.
func (l *ListenerConfig) Check(at *configs.At) {
	if l.Reauthenticate != 0 && len(l.SASL) == 0 {
		at.Errorf("reauthenticate", "has no effect without `sasl`")
	}
	if l.Reauthenticate != 0 && l.Reauthenticate < time.Second {
		at.Errorf("reauthenticate", "must be at least 1s")
	}
	if slices.Contains(l.SASL, "oauthbearer") != (l.OAuth != nil) {
		at.Errorf("oauth", "`oauth` and `sasl: [oauthbearer]` go together")
	}
}

// mechanisms are those of sasl, in SASL's own spelling.
func (l *ListenerConfig) mechanisms() []string {
	var all []string
	for _, m := range l.SASL {
		all = append(all, strings.ToUpper(m))
	}
	return all
}

// open says that whoever reaches the listener gets in.
func (l *ListenerConfig) open() bool {
	return len(l.SASL) == 0 && (l.TLS == nil || l.TLS.ClientAuth != clientRequired)
}

// beyondLoopback says that other machines can reach an address.
func beyondLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// The values of ListenerTLS.ClientAuth.
const (
	clientIgnored  = "none"
	clientRequired = "required"
)

// ListenerTLS is the section `tls` of a listener.
type ListenerTLS struct {
	Cert       string
	Key        string
	ClientCA   string
	ClientAuth string
}

// Fields declares the section.
func (t *ListenerTLS) Fields(d *configs.Fields) {
	d.String(&t.Cert, "cert", "", "File with the certificate chain, PEM. Read again when it changes.")
	d.String(&t.Key, "key", "", "File with the private key, PEM.")
	d.String(&t.ClientAuth, "client_auth", clientIgnored, "Whether clients must have a certificate of their own. Where they do and `sasl` is empty, its subject (CN=ann,O=Shop) is the user's name.", configs.Enum(clientIgnored, clientRequired))
	d.String(&t.ClientCA, "client_ca", "", "File with the certificates that clients' certificates must be signed by, PEM. Read at a start.")
}

// Check wants a certificate, and client_ca where, and only where, clients are asked for
// theirs.
func (t *ListenerTLS) Check(at *configs.At) {
	if t.Cert == "" || t.Key == "" {
		at.Errorf("", "needs both `cert` and `key`")
	}
	if (t.ClientAuth == clientRequired) != (t.ClientCA != "") {
		at.Errorf("client_ca", "`client_ca` and `client_auth: required` go together")
	}
}

// UserConfig is one element of `users`.
type UserConfig struct {
	Name     string
	Password configs.Secret
}

// Fields declares a user.
func (u *UserConfig) Fields(d *configs.Fields) {
	d.String(&u.Name, "name", "", "Name of the user.")
	d.Secret(&u.Password, "password", "Its password. What is kept of it is salted and iterated (SCRAM).")
}

// Check refuses a user that nobody could log in as.
func (u *UserConfig) Check(at *configs.At) {
	if u.Name == "" {
		at.Errorf("name", "is missing")
	}
	if u.Password.Reveal() == "" {
		at.Errorf("password", "must not be empty")
	}
}

// AuthorizationConfig is the section `authorization`.
type AuthorizationConfig struct {
	SuperUsers []string
}

// Fields declares the section.
func (a *AuthorizationConfig) Fields(d *configs.Fields) {
	d.Strings(&a.SuperUsers, "super_users", nil, "Names of users, or subjects of certificates, who may do everything. One of them makes the first ACLs.")
}

// options are those of the Kafka face.
func (f *ServerFile) options() kafka.Options {
	o := kafka.Options{Inside: f.listenerName(0)}
	if f.Authorization != nil {
		o.Authorize = true
		for _, name := range f.Authorization.SuperUsers {
			o.SuperUsers = append(o.SuperUsers, "User:"+name)
		}
	}
	return o
}
