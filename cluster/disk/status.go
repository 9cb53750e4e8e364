package disk

import (
	"time"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Status is what a node knows of its disk.
type Status struct {
	Free    int64 `json:"free_bytes"`
	Total   int64 `json:"total_bytes"`
	Reserve int64 `json:"reserve_bytes"`
	// Refusing says that appends are refused until there is more room.
	Refusing bool `json:"refusing,omitempty"`
	// Held is how many bytes retention would have removed from the disk by now if
	// no reader held them. It is known while appends are refused.
	Held int64 `json:"held_bytes,omitempty"`
	// Stalled is what has not returned for longer than the limit; nil if nothing.
	Stalled *Stall `json:"stalled,omitempty"`
	// ReadOnly is how many journals have met an error and take nothing any more: who has the journals fills it in.
	ReadOnly int `json:"read_only_journals,omitempty"`
	// Stalls counts them since the start.
	Stalls int64           `json:"stalls"`
	Seen   vfs.WatchTotals `json:"-"`
}

// Stall is an operation that the disk has not answered.
type Stall struct {
	Op   string        `json:"op"`
	File string        `json:"file"`
	For  time.Duration `json:"for_ns"`
}
