package raftgroup

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"
)

// aloneTransport is the transport of a group with one member. It has nobody to talk to; its one use is stand.
type aloneTransport struct {
	addr raft.ServerAddress
	rpcs chan raft.RPC
}

var (
	_ raft.Transport   = (*aloneTransport)(nil)
	_ raft.WithPreVote = (*aloneTransport)(nil)
)

func newAloneTransport(addr raft.ServerAddress) *aloneTransport {
	return &aloneTransport{addr: addr, rpcs: make(chan raft.RPC, 1)}
}

// errAlone answers what cannot be asked in a group of one.
var errAlone = errors.New("the group has one member")

// stand makes the member stand for election now instead of when its timer fires, with the message by which a leader
// hands over.
func (t *aloneTransport) stand() {
	t.rpcs <- raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}, RespChan: make(chan raft.RPCResponse, 1)}
}

// Consumer implements raft.Transport.
func (t *aloneTransport) Consumer() <-chan raft.RPC { return t.rpcs }

// LocalAddr implements raft.Transport.
func (t *aloneTransport) LocalAddr() raft.ServerAddress { return t.addr }

// AppendEntriesPipeline implements raft.Transport.
func (t *aloneTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, errAlone
}

// AppendEntries implements raft.Transport.
func (t *aloneTransport) AppendEntries(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error {
	return errAlone
}

// RequestVote implements raft.Transport.
func (t *aloneTransport) RequestVote(raft.ServerID, raft.ServerAddress, *raft.RequestVoteRequest, *raft.RequestVoteResponse) error {
	return errAlone
}

// RequestPreVote implements raft.WithPreVote.
func (t *aloneTransport) RequestPreVote(raft.ServerID, raft.ServerAddress, *raft.RequestPreVoteRequest, *raft.RequestPreVoteResponse) error {
	return errAlone
}

// InstallSnapshot implements raft.Transport.
func (t *aloneTransport) InstallSnapshot(raft.ServerID, raft.ServerAddress, *raft.InstallSnapshotRequest, *raft.InstallSnapshotResponse, io.Reader) error {
	return errAlone
}

// TimeoutNow implements raft.Transport.
func (t *aloneTransport) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	return errAlone
}

// EncodePeer implements raft.Transport.
func (t *aloneTransport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte {
	return []byte(addr)
}

// DecodePeer implements raft.Transport.
func (t *aloneTransport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport.
func (t *aloneTransport) SetHeartbeatHandler(func(raft.RPC)) {}
