// Package raftgroup runs one raft group on one journal: hashicorp/raft, unmodified, whose log is the journal itself.
//
// A [Group] replicates batches of records; the journal is all that it has, and retention the only thing that shortens it. A
// [Machine] replicates the commands of a state machine, with snapshots. Both elect by the same rules: who may have lost what it
// acknowledged has no vote until it has caught up, a member whose disk fails steps aside, and damage is mended from a copy that is
// whole.
package raftgroup
