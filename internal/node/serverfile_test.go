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
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
)

func TestBadServerFilesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, want string }{
		{"version: 1\ndata: d\n", "the field \"listeners\" is missing"},
		{"version: 1\ndata: d\nlisteners: []\n", "listeners: must not be empty"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\"}]\nport: 1\n", "4:1: port"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\"}, {address: \"a:1\"}]\n", "listeners[1].address: a:1 stands twice"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", sasl: [gssapi]}]\n", "listeners[0].sasl"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", sasl: [oauthbearer]}]\n", "`oauth` and `sasl: [oauthbearer]` go together"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", sasl: [oauthbearer], oauth: {keys: k, issuer: i}}]\n", "audience: is missing"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", sasl: [oauthbearer], oauth: {algorithm: HS256, keys: k, issuer: i, audience: a}}]\n", "HS256 signs with a `secret`"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", sasl: [oauthbearer], oauth: {algorithm: none, keys: k, issuer: i, audience: a}}]\n", "oauth.algorithm"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", sasl: [oauthbearer], oauth: {issuer: i, audience: a}}]\n", "RS256 signs with `keys`"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", reauthenticate: 1h}]\n", "has no effect without `sasl`"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", tls: {cert: c}}]\n", "needs both `cert` and `key`"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\", tls: {cert: c, key: k, client_auth: required}}]\n", "go together"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\"}]\nusers: [{name: ann, password: hunter2}]\n", "a secret does not stand in the file"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\"}]\nusers: [{name: ann}]\n", "users[0].password: must not be empty"},
		{"version: 1\ndata: d\nlisteners: [{address: \"a:1\"}]\nauthorization: {superusers: [a]}\n", "did you mean \"super_users\"?"},
	} {
		path := filepath.Join(t.TempDir(), "server.yaml")
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := node.LoadServerFile(path)
		var problems configs.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\n\tgave %v\n\twant %s", c.file, err, c.want)
		}
	}
}

// secured is a server of a file, which runs in the test's process.
type secured struct {
	addr, ca string
	http     string // its address for /metrics
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startSecured runs a server whose listener wants TLS and a login; its users are
// admin, who may do everything, and ann, who may do nothing. more are further lines of
// the listener.
func startSecured(t *testing.T, host, more string) secured {
	t.Helper()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("pa:ss, wörd=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(services.AddressForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	s := secured{addr: "127.0.0.1:" + port, ca: cert, http: services.AddressForTest(t), log: &lockedBuffer{}}
	file := filepath.Join(dir, "server.yaml")
	text := fmt.Sprintf(`version: 1
data: %[1]s/data
http: %[6]s
listeners:
  - address: "%[2]s:%[3]s"
    advertise: 127.0.0.1:%[3]s
%[4]s
users:
  - {name: admin, password: {file: %[5]s}}
  - {name: ann, password: {file: %[5]s}}
authorization: {super_users: [admin]}
`, dir, host, port, fmt.Sprintf(more, cert, key), password, s.http)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := node.Serve(ctx, node.ServerOptions{File: file, Log: slog.New(slog.NewTextHandler(s.log, nil)), Version: "test"}); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(s.log.String(), "msg=serving"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server does not come up:\n%s", s.log)
		}
	}
	return s
}

func selfSigned(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

const tlsAndLogin = `    sasl: [plain, scram-sha-256, scram-sha-512]
    tls: {cert: %s, key: %s}`

func TestPipelinesReachASecuredServer(t *testing.T) {
	t.Parallel()
	s := startSecured(t, "127.0.0.1", tlsAndLogin)
	open := func(user, password, mechanism string, encrypted bool) error {
		o := pipeline.JournalOptions{
			Seeds: []string{s.addr}, Remote: true,
			SASL: &pipeline.JournalSASL{Mechanism: mechanism, User: user, Password: configs.NewSecret(password)},
		}
		if encrypted {
			o.TLS = &pipeline.JournalTLS{CA: s.ca}
		}
		j, err := pipeline.OpenJournal(o)
		if err != nil {
			return err
		}
		defer j.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return j.Ping(ctx)
	}
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		if err := open("admin", "pa:ss, wörd=", mechanism, true); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		if err := open("admin", "wrong", mechanism, true); !errors.Is(err, kerr.SaslAuthenticationFailed) {
			t.Errorf("%s with a wrong password: %v, want SASL_AUTHENTICATION_FAILED", mechanism, err)
		}
	}
	if err := open("admin", "pa:ss, wörd=", "scram-sha-512", false); err == nil {
		t.Error("a client without TLS was let in")
	}
	if strings.Contains(s.log.String(), "wörd") {
		t.Error("the log shows the password")
	}
	if strings.Contains(s.log.String(), "ANYBODY") {
		t.Errorf("a guarded listener is warned of:\n%s", s.log)
	}
}

func TestServerFileSaysWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	s := startSecured(t, "127.0.0.1", tlsAndLogin)
	admin := func(user string) *kadm.Client {
		pool := x509.NewCertPool()
		text, err := os.ReadFile(s.ca)
		if err != nil {
			t.Fatal(err)
		}
		pool.AppendCertsFromPEM(text)
		c, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.DialTLSConfig(&tls.Config{RootCAs: pool}),
			kgo.SASL(scram.Auth{User: user, Pass: "pa:ss, wörd="}.AsSha512Mechanism()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return kadm.NewClient(c)
	}
	if _, err := admin("ann").CreateTopic(t.Context(), 1, 1, nil, "t"); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("ann made a topic: %v", err)
	}
	if _, err := admin("admin").CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil {
		t.Errorf("admin: %v", err)
	}
	acl := kadm.NewACLs().Topics("a.").ResourcePatternType(kadm.ACLPatternPrefixed).Allow("User:ann").AllowHosts("*").Operations(kadm.OpCreate)
	if created, err := admin("admin").CreateACLs(t.Context(), acl); err != nil || created[0].Err != nil {
		t.Fatalf("making an ACL: %v, %v", created, err)
	}
	if _, err := admin("ann").CreateTopic(t.Context(), 1, 1, nil, "a.topic"); err != nil {
		t.Errorf("ann with an ACL: %v", err)
	}
}

func TestOpenListenersAreWarnedOf(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"    tls: {cert: %s, key: %s}":                    "ANYBODY",
		"    sasl: [plain] # %s %s":                       "passwords or tokens cross the network",
		"    sasl: [scram-sha-512] # %s %s":               "",
		"    tls: {cert: %s, key: %s}\n    sasl: [plain]": "",
	} {
		s := startSecured(t, "0.0.0.0", more)
		warned := strings.Contains(s.log.String(), "level=WARN")
		if warned != (want != "") || !strings.Contains(s.log.String(), want) {
			t.Errorf("%s logged\n%s\nwant a warning of %q", more, s.log, want)
		}
	}
}
