package mysql

import (
	"errors"
	"fmt"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// watchEvery is how often the end of the server's log is compared with the place, while the server sends nothing.
const watchEvery = 5 * time.Second

// fileState is what this connection has told of the file being read.
type fileState int

const (
	fileUnknown fileState = iota
	fileBegun
	fileEnded // it says which file is next, or that the server was shut down
)

// turn looks at how one file is left for the next one. A server whose log was reset keeps
// reading the deleted file for those that are connected, and goes on with the file of the
// next number as soon as there is one: what is in the new file of the same number is never
// sent. The old file does not say so at its end; neither does one that a crash has cut off.
func (r *reader) turn(h *replication.EventHeader, next string) error {
	if h.Timestamp != 0 && h.Flags&replication.LOG_EVENT_ARTIFICIAL_F == 0 {
		r.file = fileEnded
		return nil
	}
	left := r.file == fileBegun && next != r.at.File
	r.file = fileUnknown
	if !left {
		return nil
	}
	return r.stillThere()
}

// stillThere stops the source if the file that is being read is not in the server's log any more.
func (r *reader) stillThere() error {
	verdict := r.sameLog(&resume{Server: r.srv.uuid, place: r.at, FileTime: r.fileTime})
	if verdict == nil {
		return nil
	}
	switch asked, err := r.srv.identity(r.ctx); {
	case err != nil:
		return err
	case asked != r.srv.uuid:
		return fmt.Errorf("the address leads to server %s now, the stream comes from %s", asked, r.srv.uuid)
	}
	return verdict
}

// watchLog notices a log that was reset while the server sends nothing: it would send nothing for as long as the new log has
// no file of the next number. The end of a log that is read is where the reader is, or it gets on.
func (r *reader) watchLog() error {
	if r.fileTime == 0 || time.Since(r.watched) < watchEvery {
		return nil
	}
	end, err := r.srv.end(r.ctx)
	if err != nil {
		return nil // the stream comes: what it turns to is looked at in any case
	}
	stuck := r.watchedAt == r.at && r.at.before(end.place)
	r.watched, r.watchedAt = time.Now(), r.at
	if !stuck && !end.before(r.at) {
		return nil
	}
	return r.stillThere()
}

// whyUnreadable says of a log that can't be read any further whether it was reset.
func (r *reader) whyUnreadable(err error) error {
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != "binlog-unreadable" || r.fileTime == 0 {
		return err
	}
	var reset *pipeline.StopError
	if why := r.stillThere(); errors.As(why, &reset) {
		reset.Err = fmt.Errorf("%w: %w", reset.Err, stop.Err)
		return reset
	}
	return err
}
