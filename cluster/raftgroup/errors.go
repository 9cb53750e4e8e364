package raftgroup

import "errors"

// What a group refuses. ErrNotLeader means that nothing was appended, ErrUnknownOutcome that it may or may not have been: an
// idempotent producer sends again and learns it.
var (
	ErrNotLeader      = errors.New("this member does not lead the group")
	ErrUnknownOutcome = errors.New("leadership was lost during the append: it may or may not be stored")
	ErrClosed         = errors.New("group is closed")
	// ErrSnapshotsLost: the log of a group of commands goes on behind snapshots that are damaged or gone.
	ErrSnapshotsLost = errors.New("snapshots are damaged or missing; restore the directory from a backup or another node")
	// ErrObserver: what would change a mirror.
	ErrObserver = errors.New("this is an observer, which only reads: produce to the cluster itself, and change streams, users and ACLs there")
)
