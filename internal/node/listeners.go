package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/internal/certs"
)

// listener is an open address for Kafka clients.
type listener struct {
	net.Listener
	access kafka.Access
}

// listeners are the open addresses of a server, but for that of its cluster.
type listeners struct {
	kafka []listener
	http  net.Listener // nil: there is none
}

// openListeners opens all addresses, or none.
func openListeners(f *ServerFile, log *slog.Logger) (*listeners, error) {
	var all listeners
	for i := range f.Listeners {
		l, err := openListener(&f.Listeners[i], log)
		if err != nil {
			all.close()
			return nil, err
		}
		l.access.Name = f.listenerName(i)
		all.kafka = append(all.kafka, l)
	}
	if f.HTTP != "" {
		l, err := net.Listen("tcp", f.HTTP)
		if err != nil {
			all.close()
			return nil, fmt.Errorf("%w: --http: %w", ErrEnvironment, err)
		}
		all.http = l
	}
	return &all, nil
}

func (all *listeners) close() {
	for _, l := range all.kafka {
		l.Close()
	}
	if all.http != nil {
		all.http.Close()
	}
}

// announced are the addresses that other nodes tell their clients, by the listeners' names.
func announced(all []listener) map[string]string {
	addresses := map[string]string{}
	for _, l := range all {
		addresses[l.access.Name] = cmp.Or(l.access.Advertised, l.Addr().String())
	}
	return addresses
}

func openListener(c *ListenerConfig, log *slog.Logger) (listener, error) {
	access := kafka.Access{Mechanisms: c.mechanisms(), Reauthenticate: c.Reauthenticate, Advertised: c.Advertise}
	if c.TLS != nil {
		config, err := c.TLS.config(log)
		if err != nil {
			return listener{}, fmt.Errorf("%w: listener %s: %w", ErrConfig, c.Address, err)
		}
		access.TLS = config
	}
	if c.OAuth != nil {
		verifier, err := c.OAuth.verifier(log)
		if err != nil {
			return listener{}, fmt.Errorf("%w: listener %s: oauth: %w", ErrConfig, c.Address, err)
		}
		access.Tokens = verifier
	}
	l, err := net.Listen("tcp", c.Address)
	if err != nil {
		return listener{}, fmt.Errorf("%w: --kafka: %w", ErrEnvironment, err)
	}
	warnOfListener(c, log)
	return listener{l, access}, nil
}

// warnOfListener says loudly what an operator may not have meant.
func warnOfListener(c *ListenerConfig, log *slog.Logger) {
	if !beyondLoopback(c.Address) {
		return
	}
	if c.open() {
		log.Warn("ANYBODY who reaches this address can read, change and delete everything here: give the listener `sasl`, or `tls` with client certificates", "address", c.Address)
	}
	for _, m := range c.mechanisms() {
		if (m == kafka.MechanismPlain || m == kafka.MechanismOAuthBearer) && c.TLS == nil {
			log.Warn("passwords or tokens cross the network as they are: give the listener `tls`, or let clients log in by scram-sha-512 only", "address", c.Address)
		}
	}
}

// config returns what crypto/tls wants.
func (t *ListenerTLS) config(log *slog.Logger) (*tls.Config, error) {
	cert, err := certs.Load(t.Cert, t.Key, log)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.Get}
	if t.ClientAuth != clientRequired {
		return c, nil
	}
	if c.ClientCAs, err = certs.Authorities(t.ClientCA); err != nil {
		return nil, fmt.Errorf("reading tls.client_ca: %w", err)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// ensureUsers gives the users of the file their passwords, unless they have them.
func ensureUsers(ctx context.Context, n *cluster.Node, users []UserConfig) error {
	for _, u := range users {
		if hasPassword(n, u) {
			continue
		}
		credentials, err := kafka.NewCredentials(u.Name, u.Password.Reveal())
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		for _, c := range credentials {
			if err := n.PutCredential(ctx, u.Name, c); err != nil {
				return fmt.Errorf("making user %s: %w", u.Name, err)
			}
		}
	}
	return nil
}

// hasPassword says that the user can log in with the password by every mechanism.
func hasPassword(n *cluster.Node, u UserConfig) bool {
	for _, m := range []string{kafka.MechanismScramSHA256, kafka.MechanismScramSHA512} {
		c, ok := n.Meta().Credential(u.Name, m)
		if !ok || !kafka.CheckPassword(u.Name, u.Password.Reveal(), c) {
			return false
		}
	}
	return true
}
