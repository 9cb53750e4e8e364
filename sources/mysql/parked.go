package mysql

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// A table that can't be captured is parked: its rows are left out from a place of the
// log on, all other tables go on. The list of parked tables is part of the position,
// so that no restart forgets that rows are missing. A table leaves the list
//
//	when what kept it out is mended   it is emptied at the sinks and read anew by a
//	                                  snapshot, whatever `start` says: what changed
//	                                  while it was parked is in no record
//	when it is dropped                there is nothing left to capture
//	when the configuration excludes   nobody wants it; taken in again later, it is
//	it                                read by a snapshot as any new table
//
// Whether it is mended is asked at each start, and at each statement of the log that
// names the table: then its definition is the one valid at that place.

// tableError says why one table can't be captured. It ends the capture of that table,
// not the source: see reader.contain.
type tableError struct {
	table tableName
	stop  *pipeline.StopError
}

func (e *tableError) Error() string { return e.stop.Error() }

func (e *tableError) Unwrap() error { return e.stop }

// The codes whose cause can be looked at again.
const (
	codeNoKey       = "no-primary-key"
	codeTable       = "unsupported-table"
	codeColumn      = "unsupported-column"
	codeGenerated   = "generated-columns"
	codeCascade     = "unlogged-cascade"
	codeFiltered    = "binlog-filtered"
	codeEmptied     = "table-emptied"
	codeUndecodable = "undecodable-row"
)

// parkedTable is a table on the list, as the position has it.
type parkedTable struct {
	DB    string `json:"db"`
	Table string `json:"table"`
	// At is the place in the log from which on its rows are missing.
	At    string    `json:"at"`
	Time  time.Time `json:"time"` // when that was noticed
	Code  string    `json:"code"`
	Where string    `json:"where"`
	Why   string    `json:"why"`
	Fix   string    `json:"fix"`
}

func (p *parkedTable) stop() *pipeline.StopError {
	return &pipeline.StopError{Code: p.Code, Where: p.Where, Err: errors.New(p.Why), Fix: p.Fix}
}

// contain parks the table that err is about, and returns every other error.
func (r *reader) contain(err error) error {
	var e *tableError
	if !errors.As(err, &e) {
		return err
	}
	r.park(e.table, e.stop)
	return nil
}

// park takes a table out of what is captured. One that is parked keeps its cause, unless
// the new one is that it was emptied: that has to outlive the table.
func (r *reader) park(n tableName, stop *pipeline.StopError) {
	p, already := r.parked[n]
	if already && (stop.Code != codeEmptied || p.Code == codeEmptied) {
		return
	}
	if !already {
		p = parkedTable{DB: n.db, Table: n.table, At: r.here().String(), Time: time.Now().UTC().Truncate(time.Second)}
	}
	p.Code, p.Where, p.Why, p.Fix = stop.Code, stop.Where, stop.Err.Error(), stop.Fix
	r.parked[n] = p
	r.mine[n] = true
	for _, b := range r.bindings {
		if r.reg.id(b.m.db, b.m.name) == n {
			b.codec, b.bound = nil, true
		}
	}
	if r.snap != nil {
		r.snap.forget(n)
	}
	r.log.Error("a table is parked: its changes are not captured from here on, all other tables go on",
		slog.String("table", n.String()), slog.String("at", p.At), slog.Any("error", stop))
	r.parkedChanged()
}

// parkedChanged makes a change of the list part of the next position, soon.
func (r *reader) parkedChanged() {
	r.moved, r.placed = true, time.Time{}
	r.see.setParked(toldOf(r.parkedTables()))
}

// toldOf is the list as people are told of it.
func toldOf(tables []parkedTable) []pipeline.Parked {
	list := make([]pipeline.Parked, 0, len(tables))
	for _, p := range tables {
		list = append(list, pipeline.Parked{What: p.DB + "." + p.Table, Since: p.At, At: p.Time, Code: p.Code, Why: p.Why, Fix: p.Fix})
	}
	return list
}

// ParkedAt returns the tables that are parked at a position.
func (s *Source) ParkedAt(p pipeline.Position) []pipeline.Parked {
	r, err := decodeResume(p)
	if err != nil {
		return nil
	}
	return toldOf(r.Parked)
}

// parkedTables returns the list, sorted.
func (r *reader) parkedTables() []parkedTable {
	var list []parkedTable
	for _, n := range slices.SortedFunc(maps.Keys(r.parked), compareNames) {
		list = append(list, r.parked[n])
	}
	return list
}

// parkedError returns what a run with an end must not call success: nil where no table
// is parked.
func (r *reader) parkedError() error {
	var all []error
	for _, p := range r.parkedTables() {
		all = append(all, p.stop())
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// unlist takes a table off the list that needs no snapshot.
func (r *reader) unlist(n tableName, why string) {
	p, is := r.parked[n]
	if !is {
		return
	}
	delete(r.parked, n)
	r.log.Info("a parked table is off the list", slog.String("table", n.String()), slog.String("parked at", p.At),
		slog.String("at", r.at.String()), slog.String("why", why))
	r.parkedChanged()
}

// unpark captures a table again from here on.
func (r *reader) unpark(h *replication.EventHeader, n tableName) {
	p := r.parked[n]
	delete(r.parked, n)
	r.reg.changed() // table maps that were passed over are bound anew
	r.log.Info("a parked table is captured again: it will be read by a snapshot",
		slog.String("table", n.String()), slog.String("parked at", p.At), slog.String("at", r.at.String()))
	r.readAnew(h, n)
	r.parkedChanged()
}

// readAnew voids what the sinks have of a table and has the snapshot read all of it.
func (r *reader) readAnew(h *replication.EventHeader, n tableName) {
	if r.cfg.Truncate == truncateIgnore {
		r.log.Warn("rows that were deleted while the table was not captured stay at the sinks, for the source has `truncate: ignore`",
			slog.String("table", n.String()))
	} else {
		r.emitTruncate(h, n)
	}
	r.queue(n)
}

// parkUnfit parks the tables that can't be captured from a first start on.
func (r *reader) parkUnfit(end logEnd, list []tableInfo) error {
	barred, err := r.barred(end, list)
	if err != nil {
		return err
	}
	for _, info := range list {
		n := r.reg.id(info.name.db, info.name.table)
		if stop := barred[n]; stop != nil {
			r.park(n, stop)
		} else if t := r.reg.tables[n]; t != nil {
			if err := r.contain(r.reg.check(t)); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore takes over the list of a position, inside a transaction of its own. barred are
// the tables that the server's settings keep out now.
func (r *reader) restore(h *replication.EventHeader, list []parkedTable, barred map[tableName]*pipeline.StopError) error {
	for _, p := range list {
		r.parked[r.reg.id(p.DB, p.Table)] = p
	}
	for _, n := range slices.SortedFunc(maps.Keys(barred), compareNames) {
		r.park(n, barred[n])
	}
	for _, n := range slices.SortedFunc(maps.Keys(r.parked), compareNames) {
		p := r.parked[n]
		if !r.reg.captured(n) {
			r.unlist(n, "the configuration does not select it any more")
			continue
		}
		mended, err := r.mended(n, barred[n])
		switch {
		case err != nil:
			return err
		case mended:
			r.unpark(h, n)
		case !r.mine[n]:
			r.log.Error("a table is parked still: its changes are not captured", slog.String("table", n.String()),
				slog.String("parked at", p.At), slog.Any("error", p.stop()))
		}
	}
	if len(list) > 0 {
		r.parkedChanged()
	}
	return nil
}

// reconsider looks again at the parked tables that a statement names, when it has been
// applied.
func (r *reader) reconsider(h *replication.EventHeader, s statement, c *cursor) error {
	for _, n := range slices.SortedFunc(maps.Keys(r.parked), compareNames) {
		if !r.concerns(s, c, func(other tableName) bool { return other == n }) {
			continue
		}
		if _, there := r.reg.tables[n]; !there {
			continue // it is gone; dropped has seen to that
		}
		mended, err := r.mended(n, nil)
		if err != nil {
			return err
		}
		if mended {
			r.unpark(h, n)
		}
	}
	return nil
}

// mended reports whether what kept a table out does not hold any more at the reader's
// place. bar is what the server's settings say against it at a start.
func (r *reader) mended(n tableName, bar *pipeline.StopError) (bool, error) {
	if bar != nil {
		return false, nil
	}
	p := r.parked[n]
	t := r.reg.tables[n]
	if t == nil || p.Code == codeCascade || r.reg.check(t) != nil {
		// The server knows more, such as keys that only now are fit to be one.
		var err error
		if t, err = r.settle(n); errors.Is(err, errNotYet) {
			return false, nil // a later statement names the table, and comes by here
		} else if err != nil {
			return false, err
		}
		if t != nil && r.reg.check(t) != nil {
			return false, nil
		}
	}
	switch p.Code {
	case codeNoKey, codeTable, codeColumn:
		return true, nil
	case codeGenerated:
		return t == nil || !slices.ContainsFunc(t.Columns, func(c column) bool { return c.Generated }), nil
	case codeCascade:
		if r.cfg.Cascades == cascadesIgnore {
			return true, nil
		}
		acting, err := r.cascades(n.db)
		_, still := acting[n]
		return !still, err
	case codeEmptied:
		return r.cfg.Truncate != truncateStop, nil
	}
	// Of the other causes only trying tells, which each process does once.
	return !r.mine[n], nil
}

// undecodable is the error for a row whose values are not understood.
func (r *reader) undecodable(c *rowCodec, err error) error {
	return &tableError{c.name, &pipeline.StopError{Code: codeUndecodable, Where: fmt.Sprintf("%s at %s", c.full, r.at), Err: err,
		Fix: fmt.Sprintf("report the row as a bug, and take the table out with \"!%s\" in `tables`; a version that reads it takes it in again", c.full)}}
}
