package pipeline

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/certs"
)

// dialTimeout is the most that a broker's machine takes to take up a connection, handshake included.
const dialTimeout = 5 * time.Second

// JournalTLS is the section `journal.tls`: connections to the brokers are encrypted,
// and who answers is checked.
type JournalTLS struct {
	CA         string
	Cert       string
	Key        string
	ServerName string
}

// Fields declares the section.
func (t *JournalTLS) Fields(d *configs.Fields) {
	d.String(&t.CA, "ca", "", "File with the certificates that are trusted, PEM; empty trusts the system's. Read again for each connection.")
	d.String(&t.Cert, "cert", "", "File with the client's certificate, PEM. Read again for each connection.")
	d.String(&t.Key, "key", "", "File with the key of the client's certificate, PEM.")
	d.String(&t.ServerName, "server_name", "", "Name that the brokers' certificates must carry, where it is not the host of their addresses.")
}

// Check wants certificate and key together, and files that can be read: else a worker would ask for them for ever.
func (t *JournalTLS) Check(at *configs.At) {
	if _, err := t.authorities(); err != nil {
		at.Errorf("ca", "%v", err)
	}
	if (t.Cert == "") != (t.Key == "") {
		at.Errorf("cert", "`cert` and `key` go together")
	} else if _, err := t.certificates(); err != nil {
		at.Errorf("cert", "%v", err)
	}
}

// config returns what crypto/tls wants.
func (t *JournalTLS) config() (c *tls.Config, err error) {
	c = &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if c.RootCAs, err = t.authorities(); err != nil {
		return nil, fmt.Errorf("journal.tls.ca: %w", err)
	}
	if c.Certificates, err = t.certificates(); err != nil {
		return nil, fmt.Errorf("journal.tls.cert: %w", err)
	}
	return c, nil
}

// authorities are those that are trusted; nil stands for the system's.
func (t *JournalTLS) authorities() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	return certs.Authorities(t.CA)
}

// certificates are those that the client shows, if any.
func (t *JournalTLS) certificates() ([]tls.Certificate, error) {
	if t.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("reading it and its key: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// The values of JournalSASL.Mechanism.
const (
	saslPlain    = "plain"
	saslScram256 = "scram-sha-256"
	saslScram512 = "scram-sha-512"
)

// JournalSASL is the section `journal.sasl`: the client logs in.
type JournalSASL struct {
	Mechanism string
	User      string
	Password  configs.Secret
}

// Fields declares the section.
func (s *JournalSASL) Fields(d *configs.Fields) {
	d.String(&s.Mechanism, "mechanism", saslScram512, "How the client logs in. plain sends the password itself: use it with `tls` only.", configs.Enum(saslPlain, saslScram256, saslScram512))
	d.String(&s.User, "user", "", "Name of the user.")
	d.Secret(&s.Password, "password", "Its password.")
}

// Check wants both.
func (s *JournalSASL) Check(at *configs.At) {
	if s.User == "" {
		at.Errorf("user", "is missing: who logs in?")
	}
	if !s.Password.IsSet() {
		at.Errorf("password", "is missing: write {env: NAME} or {file: PATH}")
	}
}

func (s *JournalSASL) mechanism() sasl.Mechanism {
	switch s.Mechanism {
	case saslPlain:
		return plain.Auth{User: s.User, Pass: s.Password.Reveal()}.AsMechanism()
	case saslScram256:
		return scram.Auth{User: s.User, Pass: s.Password.Reveal()}.AsSha256Mechanism()
	}
	return scram.Auth{User: s.User, Pass: s.Password.Reveal()}.AsSha512Mechanism()
}

// dial opens a connection to a broker as o says. Files of certificates are read for each, so that new ones count from the
// next connection on.
func (o *JournalOptions) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	if o.TLS == nil {
		return dialer.DialContext(ctx, network, address)
	}
	c, err := o.TLS.config()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &dialer, Config: c}).DialContext(ctx, network, address)
}
