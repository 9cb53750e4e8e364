package nginx

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/daybook-data/daybook/pipeline"
)

// state is what a Position holds: of each log the files that are being read, and the
// last few that were read to their end, oldest first. What is older than the oldest
// of them has been read, or was not wanted; what is newer than the newest has not.
type state struct {
	Version int        `json:"v"`
	At      int64      `json:"at"` // when the folders were last looked at, in µs
	Logs    []logState `json:"logs"`
}

type logState struct {
	Base  string      `json:"path"`
	Files []fileState `json:"files"`
}

// fileState says how far a file was read, and how to know it again.
type fileState struct {
	ID         string      `json:"id,omitempty"`  // empty until its first line is whole
	Generation int         `json:"gen,omitempty"` // tells files with the same ID apart
	Key        fileKey     `json:"key"`
	Offset     int64       `json:"off"`
	Head       fingerprint `json:"head"`
	Tail       fingerprint `json:"tail"`
	Done       bool        `json:"done,omitempty"`
	// Unended says that the record before Offset was emitted without its line break.
	Unended bool `json:"unended,omitempty"`
	// Plain says of a file of which nothing was read that it is not compressed.
	Plain bool `json:"plain,omitempty"`
	// Late says of a file that may be a copy that the log was there when it appeared.
	Late bool `json:"late,omitempty"`
	// Piece is how many pieces of a long line stand before Offset.
	Piece int `json:"piece,omitempty"`
}

func (s state) position() pipeline.Position {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // numbers and texts always encode
	}
	return pipeline.Position(b)
}

// parseState reads a Position. It never guesses: what it can't read stops the source.
func parseState(p pipeline.Position) (state, error) {
	var s state
	err := json.Unmarshal([]byte(p), &s)
	if err == nil && s.Version != 1 {
		err = fmt.Errorf("its version is %d, want 1", s.Version)
	}
	for _, l := range s.Logs {
		for _, f := range l.Files {
			if err == nil && (f.Offset < 0 || f.Head.Length < 0 || f.Head.Length > headLength || f.Tail.Length < 0 || f.Tail.Length > tailLength || l.Base == "") {
				err = errors.New("it holds numbers that can't be")
			}
		}
	}
	if err != nil {
		return state{}, &pipeline.StopError{
			Code: "position-unreadable", Where: fmt.Sprintf("position %.80q", string(p)),
			Err: fmt.Errorf("this is no position of an nginx source: %w", err),
			Fix: "give the source a new name, and `start: end` if what lies in the files is in the journal already",
		}
	}
	return s, nil
}
