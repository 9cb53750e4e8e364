// Package raftgroup runs one raft group on one journal: hashicorp/raft, unmodified, whose log is the journal itself.
//
// A [Group] replicates batches of records; the journal is all that it has, and retention the only thing that shortens it. A
// [Machine] replicates the commands of a state machine, with snapshots. Both elect by the same rules: who may have lost what it
// acknowledged has no vote until it has caught up, a member whose disk fails steps aside, and damage is mended from a copy that is
// whole.
//
// # What is where
//
//   - group.go and command.go are the two kinds of group; both are a member (member.go): a journal and the raft instance on it.
//     raft.go is what raft is given of the journal, alone.go its transport in a group of one.
//   - append.go gathers batches into proposals; fsm.go applies them, serve.go and verify.go say when a leader may answer readers.
//   - change.go, handover.go and progress.go: members come and go, the lead is handed over, who is how far.
//   - doubt.go and survey.go: a member that may have forgotten what it acknowledged has no vote.
//   - care.go, copies.go, compare.go and diverged.go: damage is mended, copies are compared.
//   - trim.go is DeleteRecords; snapshot_front.go the snapshots of a log that is the data, snapshot_file.go those of a state
//     machine; mirror.go an observer's copy, on which no raft runs.
//
// What raft 1.8.0 is not asked, and why: docs/decisions/20261130-raft-guards.md.
package raftgroup
