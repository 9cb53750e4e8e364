package metadata

import (
	"strconv"
	"strings"

	"github.com/hashicorp/raft"
)

// NodeName is a node's id as raft and the transport write it.
func NodeName(id int32) string { return strconv.Itoa(int(id)) }

// NodeAt is the node that a member's address names, -1 if none.
func NodeAt(address raft.ServerAddress) int32 {
	id, err := strconv.ParseInt(string(address), 10, 32)
	if err != nil || id <= 0 {
		return -1
	}
	return int32(id)
}

// ID is the copy's name in its group: copies that a node has one after the other are different members.
func (r Replica) ID() raft.ServerID {
	if r.Born == 0 {
		return raft.ServerID(NodeName(r.Node))
	}
	return raft.ServerID(NodeName(r.Node) + "." + strconv.FormatUint(r.Born, 10))
}

// Address is the copy's address as raft knows it: its node.
func (r Replica) Address() raft.ServerAddress { return raft.ServerAddress(NodeName(r.Node)) }

// Server is the copy as a member of its group.
func (r Replica) Server(suffrage raft.ServerSuffrage) raft.Server {
	return raft.Server{Suffrage: suffrage, ID: r.ID(), Address: r.Address()}
}

// BornOf is the Born of the [Replica] whose ID this is.
func BornOf(id raft.ServerID) uint64 {
	_, text, _ := strings.Cut(string(id), ".")
	born, _ := strconv.ParseUint(text, 10, 64) // the first copy has none
	return born
}
