package kafka

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"
)

// Access says how clients of a listener prove who they are. The zero value lets
// anybody in, as User:ANONYMOUS.
type Access struct {
	// Name is the listener's name. Clients that come through it are told the addresses
	// that the other nodes have announced under the same name.
	Name string
	// TLS encrypts the connections. If it asks for a client's certificate, and SASL
	// is not asked for, the certificate's subject is who the client is.
	TLS *tls.Config
	// Mechanisms are the SASL mechanisms of which a client must log in by one; none
	// if empty.
	Mechanisms []string
	// Tokens judges the tokens of clients that log in by OAUTHBEARER; it is needed where
	// that is among Mechanisms.
	Tokens TokenVerifier
	// Reauthenticate is after how long a client must log in again (KIP-368); never if
	// 0. A client that does not is cut off.
	Reauthenticate time.Duration
	// Advertised is the address (host:port) that clients of this listener are told to
	// connect to; Options.Advertised if empty.
	Advertised string
	// Trusted takes the clients for the operator, of whom no ACL is asked: it is for
	// what only the operator can reach.
	Trusted bool
}

func (a Access) check() error {
	for _, m := range a.Mechanisms {
		if !slices.Contains([]string{MechanismPlain, MechanismScramSHA256, MechanismScramSHA512, MechanismOAuthBearer}, m) {
			return fmt.Errorf("SASL mechanism %q is not known", m)
		}
		if m == MechanismOAuthBearer && a.Tokens == nil {
			return fmt.Errorf("SASL mechanism %s: nothing judges the tokens", m)
		}
	}
	if a.Advertised != "" {
		if _, _, err := splitAddress(a.Advertised); err != nil {
			return fmt.Errorf("advertised address: %w", err)
		}
	}
	return nil
}

// identity is who a client is.
type identity struct {
	principal string // User:NAME
	host      string // its address, without the port
	trusted   bool
}

// anonymous is the principal of a client that did not say who it is.
const anonymous = "User:ANONYMOUS"

// identify returns who the client of a connection is before it logs in.
func (a Access) identify(c net.Conn) identity {
	who := identity{principal: anonymous, trusted: a.Trusted}
	if host, _, err := net.SplitHostPort(c.RemoteAddr().String()); err == nil {
		who.host = host
	}
	if t, ok := c.(*tls.Conn); ok {
		if certs := t.ConnectionState().PeerCertificates; len(certs) > 0 {
			who.principal = "User:" + certs[0].Subject.String()
		}
	}
	return who
}
