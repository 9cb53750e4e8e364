// Package certs serves certificates that are renewed while they are in use.
package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Renewed is a server's certificate, read again when its file changes: those who renew
// certificates do not restart what uses them. Safe for concurrent use.
type Renewed struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // these four are written under mu
	changed time.Time        // modification time of the file that current is from
	warned  time.Time        // when it was last said that the new one can't be read
	refused time.Time        // when it was last said that clients will refuse it
}

// Load reads a certificate's chain and its key from two files in PEM form. It warns where clients will refuse the
// certificate for its time: that is no error, as a good one may be on its way.
func Load(cert, key string, log *slog.Logger) (*Renewed, error) {
	c := &Renewed{cert: cert, key: key, log: log}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return c, nil
}

// load reads the files; c.mu is held, or c not yet shared.
func (c *Renewed) load() error {
	info, err := os.Stat(c.cert)
	if err != nil {
		return err
	}
	if c.current != nil && info.ModTime().Equal(c.changed) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current, c.changed, c.refused = &pair, info.ModTime(), time.Time{}
	c.warnOfTime(time.Now())
	return nil
}

// warnOfTime says so where the certificate is not valid now, once an hour. It is valid when it is read, as a rule, and runs
// out while it is in use: nobody else tells its owner.
func (c *Renewed) warnOfTime(now time.Time) {
	if now.Sub(c.refused) < time.Hour {
		return
	}
	switch leaf := c.current.Leaf; {
	case now.After(leaf.NotAfter):
		c.refused = now
		c.log.Warn("the certificate has EXPIRED: clients will refuse it until its file holds a new one", "file", c.cert, "until", leaf.NotAfter)
	case now.Before(leaf.NotBefore):
		c.refused = now
		c.log.Warn("the certificate is not valid yet: clients will refuse it (is this machine's clock right?)", "file", c.cert, "from", leaf.NotBefore)
	}
}

// Get returns the certificate for a handshake. While a new one can't be read (its
// key is perhaps still being written) the old one stays in use. Reading two small
// local files under the lock is what a handshake waits for anyway.
func (c *Renewed) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil && time.Since(c.warned) > time.Minute {
		c.warned = time.Now()
		c.log.Warn("the certificate can't be read again; the old one stays in use", "file", c.cert, "error", err)
	}
	c.warnOfTime(time.Now())
	return c.current, nil
}
