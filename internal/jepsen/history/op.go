package history

import (
	"math"
	"strconv"
	"strings"
)

// Kind is what a client did.
type Kind string

// The kinds of operations.
const (
	Send   Kind = "send"   // produced Sends, each with an outcome of its own
	Txn    Kind = "txn"    // read Reads and sent Sends in one transaction: OK is committed, Fail is aborted
	Poll   Kind = "poll"   // saw Reads, in this order
	Seek   Kind = "seek"   // set the places of Positions, from which the session's next polls go on
	Scan   Kind = "scan"   // read a partition whole: Positions holds its start and its end, Reads what was between
	End    Kind = "end"    // asked the leader for the ends in Positions
	Commit Kind = "commit" // committed Positions for Group
	Fetch  Kind = "fetch"  // asked for Group's Positions
	Create Kind = "create" // made Stream; Fail if it was there
	Delete Kind = "delete" // removed Stream; Fail if it was not there
)

// Outcome is what a client knows of what it did.
type Outcome string

// The outcomes. Fail is a promise that the operation has not happened and never will; of Create and Delete it says that
// the stream was as it would have left it. Nothing is one that reached nobody, and tells nothing.
const (
	OK      Outcome = "ok"
	Fail    Outcome = "fail"
	Unknown Outcome = "unknown"
	Nothing Outcome = "nothing"
)

// Never is the time of what has not happened.
const Never = math.MaxInt64

// Nowhere is an offset that nobody knows.
const Nowhere = -1

// An Op is one operation of a client.
type Op struct {
	Index    int     `json:"index"`
	Session  string  `json:"session"` // one Kafka client from its start to its end, which does one thing after the other
	Kind     Kind    `json:"kind"`
	Invoke   int64   `json:"invoke"`   // nanoseconds since the history's begin
	Complete int64   `json:"complete"` // Never if the outcome is unknown
	Outcome  Outcome `json:"outcome"`
	Error    string  `json:"error,omitempty"`

	Committed bool       `json:"committed,omitempty"` // of readers: they read committed transactions only
	Ending    int64      `json:"ending,omitempty"`    // of Txn: when the commit was asked for; 0 if never
	Sends     []Sent     `json:"sends,omitempty"`
	Reads     []Read     `json:"reads,omitempty"`
	Positions []Position `json:"positions,omitempty"`
	Group     string     `json:"group,omitempty"`
	Stream    string     `json:"stream,omitempty"`
}

// Sent is a record that was produced. Values are unique in a history.
type Sent struct {
	Partition Partition `json:"p"`
	Value     int64     `json:"v"`
	Offset    int64     `json:"o"` // Nowhere if it was not acknowledged with one
	Outcome   Outcome   `json:"is"`
}

// Read is a record that was seen.
type Read struct {
	Partition Partition `json:"p"`
	Offset    int64     `json:"o"`
	Value     int64     `json:"v"`
}

// Position is a place in a partition; Nowhere is one that is not known.
type Position struct {
	Partition Partition `json:"p"`
	Offset    int64     `json:"o"`
	End       int64     `json:"end,omitempty"` // of Scan
}

// Partition names one: stream/number.
type Partition string

// NewPartition returns the name of a stream's partition.
func NewPartition(stream string, number int32) Partition {
	return Partition(stream + "/" + strconv.Itoa(int(number)))
}

// Split returns the stream and the number. One that NewPartition did not make has the number -1.
func (p Partition) Split() (stream string, number int32) {
	at := strings.LastIndexByte(string(p), '/')
	if at < 0 {
		return string(p), -1
	}
	n, err := strconv.ParseInt(string(p[at+1:]), 10, 32)
	if err != nil {
		return string(p), -1
	}
	return string(p[:at]), int32(n)
}
