package mysql

import (
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Positions cost something to make, so that they are given with one Emit in a while,
// and where nothing of interest happens even more rarely.
const (
	placeEvery = 100 * time.Millisecond
	moveEvery  = time.Second
)

// flush hands on what was collected; the server has nothing more to send just now.
func (r *reader) flush() error {
	if len(r.batch.records) == 0 && (!r.moved || time.Since(r.placed) < moveEvery) || r.tx.held.records > 0 && !r.tx.held.large() {
		return nil
	}
	r.placed = time.Time{}
	return r.emit()
}

// emit hands on what was collected, with a position where that is due and the last
// record is the end of a transaction: to go on from an earlier place would repeat
// records that the journal is known to have.
func (r *reader) emit() error {
	records := r.batch.take()
	var position pipeline.Position
	if r.moved && !r.beyond && time.Since(r.placed) > placeEvery {
		position = r.resume()
	}
	if position == "" && len(records) == 0 {
		return nil
	}
	if err := r.out.Emit(r.ctx, records, position); err != nil {
		return err
	}
	if position != "" {
		r.moved, r.placed = false, time.Now()
	}
	r.see.emitted(len(records), r.safe.place, r.logged)
	return nil
}

// resume returns the place to go on from if all collected so far were durable.
func (r *reader) resume() pipeline.Position {
	p := resume{
		Version: resumeVersion, Server: r.srv.uuid, place: r.safe.place, FileTime: r.safe.fileTime,
		Tables: r.reg.pack(), Patterns: r.cfg.Tables,
	}
	if r.done != nil {
		p.GTIDs = r.done.String()
	}
	p.Snapshot, p.Parked = r.mark(), r.parkedTables()
	return p.encode()
}

func (r *reader) mark() *snapshotMark {
	if r.snap != nil {
		return r.snap.mark()
	}
	return r.snapDone
}

// rowTime returns the event time of rows, in µs.
func (r *reader) rowTime(h *replication.EventHeader) int64 {
	if r.tx.micros != 0 {
		return r.tx.micros
	}
	return int64(h.Timestamp) * 1e6
}
