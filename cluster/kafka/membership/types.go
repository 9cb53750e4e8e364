package membership

import (
	"errors"
	"time"
)

// Refusals, each the Kafka error of that name.
var (
	ErrUnknownMember        = errors.New("unknown member id")
	ErrMemberIDRequired     = errors.New("member id required")
	ErrFencedInstance       = errors.New("static member was replaced")
	ErrIllegalGeneration    = errors.New("illegal generation")
	ErrRebalanceInProgress  = errors.New("rebalance in progress")
	ErrInconsistentProtocol = errors.New("inconsistent group protocol")
	ErrInvalidSession       = errors.New("invalid session timeout")
	ErrGroupFull            = errors.New("group has its maximum of members")
	ErrClosed               = errors.New("coordinator is closed")
)

// Bounds of a group.
const (
	MinSession = 10 * time.Millisecond
	MaxSession = 30 * time.Minute
	maxMembers = 10_000
)

// State is where a group stands. The names are Kafka's.
type State string

// The states of a group.
const (
	Empty               State = "Empty"
	PreparingRebalance  State = "PreparingRebalance"
	CompletingRebalance State = "CompletingRebalance"
	Stable              State = "Stable"
)

// Protocol is one way of assigning that a member supports, with what the member
// tells the leader about itself.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Join asks to become or stay a member. The group keeps it: its slices must not
// be parts of a buffer that is used again.
type Join struct {
	MemberID   string // empty for a new member
	InstanceID string // empty for a dynamic member
	ClientID   string
	Host       string
	Session    time.Duration // without a heartbeat for so long the member is gone
	Rebalance  time.Duration // how long others wait for it to rejoin; Session if 0
	Type       string
	Protocols  []Protocol // in order of preference
	// RequireID makes a new dynamic member come again with the id it is given, so
	// that answers lost on the way leave no ghosts behind.
	RequireID bool
	// CanSkip says that the member, if it leads, can be told not to assign.
	CanSkip bool
}

// Joined is the answer to Join.
type Joined struct {
	Err        error
	MemberID   string
	Generation int32
	Type       string
	Protocol   string
	Leader     string
	Members    []Member // for the leader only
	// SkipAssignment tells a leader that everybody keeps what they have.
	SkipAssignment bool
}

// Member is what the leader is told about a member.
type Member struct {
	ID         string
	InstanceID string
	Metadata   []byte
}

// Sync asks for the member's assignment; the leader brings everyone's.
type Sync struct {
	MemberID    string
	InstanceID  string
	Generation  int32
	Type        string // empty if the client did not say
	Protocol    string // empty if the client did not say
	Assignments map[string][]byte
}

// Synced is the answer to Sync.
type Synced struct {
	Err        error
	Type       string
	Protocol   string
	Assignment []byte
}

// Description is a group as it stands.
type Description struct {
	State    State
	Type     string
	Protocol string
	Members  []MemberDescription
}

// MemberDescription is a member as it stands.
type MemberDescription struct {
	Member
	ClientID   string
	Host       string
	Assignment []byte
}
