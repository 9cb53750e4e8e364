package status

import (
	"time"

	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// Report is what a node says of itself.
type Report struct {
	Version string      `json:"version,omitempty"`
	Started time.Time   `json:"started"`
	Disk    disk.Status `json:"disk"`
	// Problem is why data does not move there; empty while it does.
	Problem string `json:"problem,omitempty"`
	// Journals are the copies that the node has open, in the order of streams.
	Journals []Copy `json:"journals"`
	// More says that there are further ones.
	More bool `json:"more,omitempty"`
}

// Copy is what a node knows of its copy of a journal.
type Copy struct {
	metadata.StreamJournal
	Born uint64 `json:"born,omitempty"`
	// Term is raft's: the leader's epoch.
	Term  uint64 `json:"term"`
	Leads bool   `json:"leads,omitempty"`
	// Last is the copy's last entry, Position where it ends, in bytes since the journal began.
	Last     uint64 `json:"last"`
	Position uint64 `json:"position"`
	// Problem is why the copy takes nothing any more; Doubt why it has no vote for now.
	Problem string `json:"problem,omitempty"`
	Doubt   string `json:"doubt,omitempty"`
	// Followers are the other members of the group, as the leader sees them.
	Followers []Follower `json:"followers,omitempty"`
}

// Follower is another copy as the leader sees it.
type Follower struct {
	Node  int32  `json:"node"`
	Born  uint64 `json:"born,omitempty"`
	Voter bool   `json:"voter,omitempty"`
	// Known says that it has answered this leader; only then the other fields hold.
	Known bool `json:"known,omitempty"`
	// Near says that it has nearly everything that the leader has.
	Near    bool   `json:"near,omitempty"`
	Entries uint64 `json:"entries_behind"`
	Bytes   uint64 `json:"bytes_behind"`
}

// Answer is what a node answered that was asked for its report.
type Answer struct {
	Report
	Err error // why it gave none
}
