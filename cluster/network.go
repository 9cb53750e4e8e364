package cluster

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"strconv"
	"time"
)

// Network is what a node needs to be one of several.
type Network struct {
	// Listener is where the other nodes connect. It belongs to the node, which closes it. Required.
	Listener net.Listener
	// Advertise is the address that the other nodes are told; the Listener's own if empty.
	Advertise string
	// Join holds addresses of nodes of the cluster to join. It counts only for an empty directory, which founds a new cluster
	// if Join is empty; later the directory knows its cluster.
	Join []string
	// Rack is the zone of the node: the replicas of a journal go to different ones.
	Rack string
	// TLS is used on both sides of every connection between nodes; see [transport.Options]. Nil is none.
	TLS *tls.Config
	// Dial opens a connection to another node; over TCP if nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Timeout is raft's heartbeat and election timeout, and after how long without a word a node is taken for dead; 2 s if 0.
	Timeout time.Duration
}

// Member is a node of the cluster, as the metadata knows it.
type Member struct {
	ID int32 `json:"id"`
	// Address is where other nodes reach it; empty for a node without a network.
	Address string `json:"address,omitempty"`
	Rack    string `json:"rack,omitempty"`
	// Listeners are the addresses for Kafka clients, by the listener's name.
	Listeners map[string]string `json:"listeners,omitempty"`
	// Leaving says that it is being emptied, to be taken out.
	Leaving bool `json:"leaving,omitempty"`
}

// clone returns a copy that shares nothing.
func (m Member) clone() Member {
	m.Listeners = maps.Clone(m.Listeners)
	return m
}

// foundingNode is the id of the node that founds a cluster, and of one that has no network.
const foundingNode int32 = 1

// nodeName is a node's id as raft and the transport write it.
func nodeName(id int32) string { return strconv.Itoa(int(id)) }
