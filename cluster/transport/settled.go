package transport

import "github.com/hashicorp/raft"

// Settled returns the request that raft is to get in place of a leader's, as two things that leaders ask raft 1.8.0
// cannot be trusted with:
//
//   - A snapshot, or entries, of what this log is past. The leader does not know how far this log goes, since answers of
//     it were lost, or the request is an old one. Raft would restore the snapshot and give up all entries behind it, which may
//     have been acknowledged, or refuse the entries, and be sent the snapshot for that. Instead it is asked whether it agrees
//     with the leader about what the journal has for that place, and keeps what lies behind it, as rule 6 of InstallSnapshot
//     in raft's paper says.
//   - To commit more than the request shows to be the same here: raft takes whatever its log has there for committed.
//
// The answer to the request that is returned is that to req. req may be changed.
func Settled(j Journal, req any) any {
	switch r := req.(type) {
	case *raft.InstallSnapshotRequest:
		at, term, ok := j.Anchor(r.LastLogIndex, r.LastLogTerm)
		if !ok {
			return r
		}
		return &raft.AppendEntriesRequest{RPCHeader: r.RPCHeader, Term: r.Term, PrevLogEntry: at, PrevLogTerm: term, LeaderCommitIndex: at}
	case *raft.AppendEntriesRequest:
		settle(j, r)
	}
	return req
}

func settle(j Journal, r *raft.AppendEntriesRequest) {
	if isHeartbeat(r) {
		return
	}
	if at, term, ok := j.Anchor(r.PrevLogEntry, r.PrevLogTerm); ok && at > r.PrevLogEntry {
		r.Entries = r.Entries[min(len(r.Entries), int(at-r.PrevLogEntry)):]
		r.PrevLogEntry, r.PrevLogTerm = at, term
	}
	r.LeaderCommitIndex = min(r.LeaderCommitIndex, r.PrevLogEntry+uint64(len(r.Entries)))
}
