package pipeline

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/daybook-data/daybook/configs"
)

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
	d.String(&t.CA, "ca", "", "File with the certificates that are trusted, PEM; empty trusts the system's.")
	d.String(&t.Cert, "cert", "", "File with the client's certificate, PEM.")
	d.String(&t.Key, "key", "", "File with the key of the client's certificate, PEM.")
	d.String(&t.ServerName, "server_name", "", "Name that the brokers' certificates must carry, where it is not the host of their addresses.")
}

// Check wants certificate and key together.
func (t *JournalTLS) Check(at *configs.At) {
	if (t.Cert == "") != (t.Key == "") {
		at.Errorf("cert", "`cert` and `key` go together")
	}
}

// config returns what crypto/tls wants.
func (t *JournalTLS) config() (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("reading journal.tls.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("journal.tls.ca holds no certificate in PEM form")
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("reading journal.tls.cert and journal.tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
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

// security returns the options of a client that encrypts and logs in as o says.
func (o *JournalOptions) security() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	if o.TLS != nil {
		c, err := o.TLS.config()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if o.SASL != nil {
		opts = append(opts, kgo.SASL(o.SASL.mechanism()))
	}
	return opts, nil
}
