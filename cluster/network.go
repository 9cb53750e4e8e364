package cluster

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Network is what a node needs to be one of several.
type Network struct {
	// Listener is where the other nodes connect. It belongs to the node, which closes it. Required.
	Listener net.Listener
	// Advertise is the address that the other nodes are told; the Listener's own if empty.
	Advertise string
	// Join holds addresses of nodes of the cluster to join. An empty directory founds a new cluster if Join is empty. Later the
	// directory knows its cluster; the other nodes are then looked for there, too. A directory that founded a cluster of one
	// does not go on if one of the addresses is that of another cluster; see [Node.Removed].
	Join []string
	// Abandon ends the waiting for a node that lets this one in, once it is closed: Open returns ErrAbandoned. May be nil.
	Abandon <-chan struct{}
	// Rack is the zone of the node: the replicas of a journal go to different ones.
	Rack string
	// TLS is used on both sides of every connection between nodes; see [transport.Options]. Nil is none.
	TLS *tls.Config
	// Dial opens a connection to another node; over TCP if nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Timeout is raft's heartbeat and election timeout, and after how long without a word a node is taken for dead; 2 s if 0.
	Timeout time.Duration
}

// dial opens a connection to an address.
func (o *Network) dial(ctx context.Context, address string) (net.Conn, error) {
	if o.Dial != nil {
		return o.Dial(ctx, address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}
