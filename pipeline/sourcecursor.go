package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// SourceCursor is what a journal holds of a source that need not run.
type SourceCursor struct {
	// Position is where it goes on; empty if it has never stored one. PositionText says it as a person would.
	Position     Position        `json:"position,omitempty"`
	PositionText string          `json:"position_text,omitempty"`
	Ends         map[int32]int64 `json:"ends,omitempty"` // see SourceStatus
	Parked       []Parked        `json:"parked,omitempty"`
}

// Parker is a Source whose positions name what is parked at them. ParkedAt is called at any time, from any goroutine,
// and returns nothing for a position that it can't read.
type Parker interface {
	ParkedAt(Position) []Parked
}

// SourceCursor returns the cursor of a source as the journal holds it. The source is asked what its position says; it
// does not run.
func (j *Journal) SourceCursor(ctx context.Context, pipeline string, source *SourceEntry) (at SourceCursor, err error) {
	existing, err := j.Streams(ctx)
	if err != nil || !slices.Contains(existing, source.Stream) {
		return at, err
	}
	c, ok, err := j.loadSource(ctx, sourceGroup(pipeline, source.Name), source.Stream)
	if err != nil || !ok {
		return at, err
	}
	at.Position, at.Ends = c.Position, c.Ends
	if c.Position == "" {
		return at, nil
	}
	s, err := source.Config.OpenSource(SourceEnv{Pipeline: pipeline, Name: source.Name, Stream: source.Stream, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return at, fmt.Errorf("asking source %s what its position says: %w", source.Name, err)
	}
	if d, ok := s.(Describer); ok {
		at.PositionText = d.Describe(c.Position)
	}
	if p, ok := s.(Parker); ok {
		at.Parked = p.ParkedAt(c.Position)
	}
	return at, nil
}
