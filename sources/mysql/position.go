package mysql

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/daybook-data/daybook/pipeline"
)

// resume is what a Position of this source holds: all that is needed to go on.
type resume struct {
	Version int `json:"v"`
	// Server is the server's identity. Places in its files mean nothing elsewhere;
	// GTIDs do.
	Server string `json:"server"`
	place
	// FileTime is when the file was begun, to recognise a log that was reset. It is
	// zero where that is not known.
	FileTime uint32 `json:"fileTime,omitempty"`
	// GTIDs are all transactions up to here.
	GTIDs  string `json:"gtids,omitempty"`
	Tables string `json:"tables"` // see registry.pack
	// Patterns selected the tables; what a change of them adds is read by a snapshot.
	Patterns []string      `json:"patterns"`
	Snapshot *snapshotMark `json:"snapshot,omitempty"`
	// Parked are the tables whose rows are missing, see parked.go.
	Parked []parkedTable `json:"parked,omitempty"`
}

// snapshotMark says how far the snapshot got. It is kept when it is over, so that
// nothing is read twice.
type snapshotMark struct {
	// Wait lists the tables that are still to be read, the first one possibly in part.
	Wait []waiting `json:"wait,omitempty"`
	// Last is the key of the last row read of the first of them, as SQL literals.
	Last []string `json:"last,omitempty"`
	Rows int64    `json:"rows,omitempty"` // read of the first of them
}

// waiting is a table that the snapshot is to read.
type waiting struct {
	DB    string `json:"db"`
	Table string `json:"table"`
	// ID tells one reading of a table from another in the positions of its records. It
	// is the place in the log where it was decided.
	ID string `json:"id"`
}

func (w waiting) full() string { return w.DB + "." + w.Table }

const resumeVersion = 1

func (r *resume) encode() pipeline.Position {
	b, _ := json.Marshal(r) // a struct of texts and numbers can't fail
	return pipeline.Position(b)
}

// Describe says a position as an operator knows it: the place in the log and the
// transactions up to there.
func (s *Source) Describe(p pipeline.Position) string {
	r, err := decodeResume(p)
	if err != nil {
		return string(p)
	}
	text := r.place.String()
	if r.GTIDs != "" {
		text += ", GTIDs " + shortGTIDs(r.GTIDs)
	}
	return text
}

func decodeResume(p pipeline.Position) (*resume, error) {
	var r resume
	if err := json.Unmarshal([]byte(p), &r); err != nil {
		return nil, &pipeline.StopError{Code: "bad-position", Where: "the source's position", Err: err,
			Fix: anew}
	}
	if r.Version != resumeVersion {
		return nil, &pipeline.StopError{Code: "bad-position", Where: "the source's position",
			Err: fmt.Errorf("it has form %d, this program writes %d", r.Version, resumeVersion),
			Fix: "run the version of Daybook that wrote it, or " + anew}
	}
	if r.File == "" {
		return nil, &pipeline.StopError{Code: "bad-position", Where: "the source's position", Err: errors.New("it names no binlog file"),
			Fix: anew}
	}
	return &r, nil
}
