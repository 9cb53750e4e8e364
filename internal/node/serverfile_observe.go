package node

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/configs"
)

// observes says that the server is an observer of a cluster and no node of it.
func (c *ClusterConfig) observes() bool { return len(c.Observe) > 0 }

// checkObserver holds the rules for an observer.
func (c *ClusterConfig) checkObserver(at *configs.At) {
	for i, addr := range c.Observe {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			at.Item("observe", i).Errorf("", "%q is not host:port", addr)
		}
	}
	if len(c.Join) > 0 {
		at.Errorf("join", "`join` makes a node of the cluster, `observe` an observer: give one of them")
	}
	if c.Advertise != "" {
		at.Errorf("advertise", "has no effect on an observer: nobody is told where it is")
	}
	if c.ObserveRetention < 0 {
		at.Errorf("observe_retention", "must not be negative")
	}
}

// observe is what an observer needs; nil for any other server.
func (f *ServerFile) observe(log *slog.Logger) (*cluster.Observe, error) {
	c := f.Cluster
	if c == nil || !c.observes() {
		return nil, nil
	}
	if len(c.Join) > 0 || c.Advertise != "" {
		return nil, fmt.Errorf("%w: --observe goes with neither --join nor --cluster-advertise: an observer is no node of the cluster, and nobody is told where it is", ErrConfig)
	}
	o := &cluster.Observe{Upstreams: c.Observe, Rack: c.Rack, Retention: c.ObserveRetention}
	if c.TLS != nil {
		config, err := c.TLS.config(log)
		if err != nil {
			return nil, fmt.Errorf("%w: cluster.tls: %w", ErrConfig, err)
		}
		o.TLS = config
	}
	if c.Listen == "" {
		return o, nil
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: cluster.listen: %w", ErrEnvironment, err)
	}
	o.Listener = l
	if c.TLS == nil && beyondLoopback(c.Listen) {
		log.Warn("ANYBODY who reaches this address can read everything: give `cluster` a `tls` section", "address", c.Listen)
	}
	return o, nil
}
