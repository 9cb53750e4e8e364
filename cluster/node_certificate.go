package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// With TLS a node's identity is where it is: who calls itself a node has to have a certificate for the host at which that
// node is known to be. So a certificate of the cluster's authority, for another host, makes nobody another node, and takes
// no address away from one (docs/decisions/20261130-node-certificates.md).

// mayBe decides whether who has a certificate may call itself a node. address is where it says it is, or was found.
func (n *Node) mayBe(name, address string, state tls.ConnectionState) error {
	id := metadata.NodeAt(raft.ServerAddress(name))
	if id == n.id {
		return nil // only this one greets itself: who says hello as it is refused in any case
	}
	known := n.knownAddress(id)
	if err := isFor(state, address); err != nil {
		return fmt.Errorf("node %d says that it is at %s: %w; a node needs a certificate for the host of the address that it advertises", id, address, err)
	}
	if err := isFor(state, known); err != nil {
		return fmt.Errorf("node %d is known to be at %s: %w; a node that moves to another host needs a certificate for the former one, too, until all others know the new one", id, known, err)
	}
	return nil
}

// mayJoin decides whether who has a certificate may become the node at an address.
func (n *Node) mayJoin(address string, state *tls.ConnectionState) error {
	if state == nil {
		return nil // without TLS whoever reaches the address of a node may
	}
	if err := isFor(*state, address); err != nil {
		return fmt.Errorf("the node that asks to join gives %s as its address: %w; a node needs a certificate for the host of the address that it advertises", address, err)
	}
	return nil
}

// knownAddress is where a node is by the metadata, or was at the last start where the metadata does not know it yet; empty if
// this node never heard of it.
func (n *Node) knownAddress(id int32) string {
	if m, ok := n.meta.Member(id); ok {
		return m.Address
	}
	return n.file.Get().Peers[id]
}

// isFor says whether the other side's certificate is for the host of an address; an empty one asks for nothing.
func isFor(state tls.ConnectionState, address string) error {
	if address == "" {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("it shows no certificate")
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	return state.PeerCertificates[0].VerifyHostname(host)
}
