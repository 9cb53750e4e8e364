package transport

import (
	"net"
	"sync"
	"time"
)

const (
	// complainEvery is how often the connections that one host opens in vain are worth a line.
	complainEvery = time.Minute
	// complainOf is of how many hosts that is remembered.
	complainOf = 256
)

// complaints keeps those who scan ports, or try again for ever, from filling the log. Safe for concurrent use.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time // by host
}

// due says whether what a remote did is to be logged now.
func (c *complaints) due(remote net.Addr, now time.Time) bool {
	host := remote.String()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, known := c.last[host]; known && now.Sub(at) < complainEvery {
		return false
	}
	for h, at := range c.last {
		if now.Sub(at) >= complainEvery {
			delete(c.last, h)
		}
	}
	if len(c.last) >= complainOf {
		return false
	}
	if c.last == nil {
		c.last = map[string]time.Time{}
	}
	c.last[host] = now
	return true
}
