package metadata

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"
)

// StreamID identifies a stream for good: a stream deleted and created again
// under the same name has another one. It is a version 4 UUID; Kafka clients
// see it as the topic id.
type StreamID [16]byte

// NewStreamID returns an id that no stream has.
func NewStreamID() StreamID {
	var id StreamID
	_, _ = rand.Read(id[:]) // documented never to fail
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// String returns the usual form of a UUID. It is also the name of the stream's
// directory.
func (id StreamID) String() string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseStreamID reads what String writes.
func ParseStreamID(s string) (StreamID, error) {
	var id StreamID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, fmt.Errorf("%q is no stream id", s)
	}
	if _, err := hex.Decode(id[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:])); err != nil {
		return id, fmt.Errorf("%q is no stream id: %w", s, err)
	}
	return id, nil
}

// MarshalText writes the form of String.
func (id StreamID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String.
func (id *StreamID) UnmarshalText(text []byte) error {
	parsed, err := ParseStreamID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// Stream describes a stream. Values are immutable once they are in the metadata.
type Stream struct {
	ID         StreamID `json:"id"`
	Name       string   `json:"name"`
	Partitions int32    `json:"partitions"`
	// Journals is how many journals the partitions share; it never changes.
	Journals int32 `json:"journals"`
	// Config holds the settings given, not the defaults.
	Config        map[string]string `json:"config,omitempty"`
	CreatedMillis int64             `json:"created_ms"`
	// Placement says by journal which nodes have it, the one that should lead it first. A stream that a node alone created
	// has none; then the founding node has everything.
	Placement [][]Replica `json:"placement,omitempty"`
	// Leaving are, by journal, copies that it is to lose, until its group counts on them no more.
	Leaving [][]Replica `json:"leaving,omitempty"`
	// Wanted is, by journal, how many copies it is to have where that is not as many as are placed, else 0.
	Wanted []int32 `json:"wanted,omitempty"`
	// Founders are, by journal, the nodes that its group was begun with, once Placement differs from it.
	Founders [][]int32 `json:"founders,omitempty"`
	// Births counts the copies that came after the first.
	Births uint64 `json:"births,omitempty"`
	// Removed are the nodes that have removed the files of the stream, which is being deleted.
	Removed []int32 `json:"removed,omitempty"`
	// Deleting means that the name is free again and the files are on their way
	// out.
	Deleting bool `json:"deleting,omitempty"`
}

// JournalOf returns which of the stream's journals holds the partition.
func (s *Stream) JournalOf(partition int32) int32 { return partition % s.Journals }

// Created returns when the stream was created.
func (s *Stream) Created() time.Time { return time.UnixMilli(s.CreatedMillis) }

// Bounds of a stream. A partition costs a few hundred bytes of memory, a journal
// a segment on disk and some goroutines.
const (
	maxStreamName = 249
	MaxPartitions = 100_000
	maxJournals   = 256
)

var streamName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// ValidStreamName reports whether a stream may be called so. The rule is
// Kafka's: 1 to 249 of letters, digits, '.', '_' and '-', and not "." or "..".
func ValidStreamName(name string) bool {
	return len(name) <= maxStreamName && name != "." && name != ".." && streamName.MatchString(name)
}
