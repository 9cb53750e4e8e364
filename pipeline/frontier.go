package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// keepFrontier is how long frontiers are kept; a reader wants the latest only.
const keepFrontier = time.Hour

// frontier is one record of FrontierStream: what a source promises of a stream, so
// that its silence can be told from its absence.
type frontier struct {
	Pipeline string `json:"pipeline"`
	Source   string `json:"source"`
	Stream   string `json:"stream"`
	StreamID string `json:"stream_id"`
	// Stamp is J: every record that the source has appended with a lower stamp lies
	// below Ends, and every later one gets a higher stamp.
	Stamp int64 `json:"stamp"`
	// Ends are offsets by partition number.
	Ends []int64 `json:"ends"`
	// Closed says that the source has ended and promises nothing further.
	Closed bool `json:"closed,omitempty"`
}

// appendFrontier makes a frontier known.
func (j *Journal) appendFrontier(ctx context.Context, f frontier) error {
	value, err := json.Marshal(f)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	k := &kgo.Record{Topic: FrontierStream, Key: []byte(f.Pipeline + "/" + f.Source), Value: value}
	if err := j.append(ctx, k); err != nil {
		return fmt.Errorf("appending to %s: %w", FrontierStream, err)
	}
	return nil
}

// parseFrontier reads a record of FrontierStream; ok is false for what is none.
func parseFrontier(k *kgo.Record) (f frontier, ok bool) {
	err := json.Unmarshal(k.Value, &f)
	return f, err == nil && f.Stream != ""
}

// recentFrontiers is how many records of FrontierStream a new source looks back.
const recentFrontiers = 1000

// highestFrontier returns the greatest stamp that any source has promised of the
// stream of late, so that a new writer begins above it.
func (j *Journal) highestFrontier(ctx context.Context, stream StreamInfo) (int64, error) {
	ends, err := j.Ends(ctx, FrontierStream)
	if err != nil {
		return 0, err
	}
	starts, err := j.Starts(ctx, FrontierStream)
	if err != nil {
		return 0, err
	}
	p := Partition{Stream: FrontierStream}
	from := max(starts[p], ends[p]-recentFrontiers)
	var highest int64
	err = j.read(ctx, FrontierStream, map[int32]int64{0: from}, map[int32]int64{0: ends[p]}, func(k *kgo.Record) error {
		if f, ok := parseFrontier(k); ok && f.Stream == stream.Name && f.StreamID == stream.ID {
			highest = max(highest, f.Stamp)
		}
		return nil
	})
	return highest, err
}
