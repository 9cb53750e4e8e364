package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// sameLog checks that a position is one of the log that the server has now. GTIDs alone don't tell: a server whose log was reset counts from 1 again, and
// once it has given out the numbers that were read, it passes over as many new transactions.
func (r *reader) sameLog(p *resume) error {
	if p.Server != r.srv.uuid || p.FileTime == 0 {
		return nil
	}
	files, err := r.srv.logFiles(r.ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(files, func(f logFile) bool { return f.name == p.File && f.size >= p.Pos }) {
		if same, err := r.sameFile(p); err != nil || same {
			return err
		}
	}
	reset := &pipeline.StopError{Code: "binlog-reset", Where: p.place.String(), Fix: anew,
		Err: errors.New("the server's log is not the one that was read before: it was reset")}
	if r.done == nil {
		return reset
	}
	// The file is gone. If its time was over, all that was read went no later.
	gone, err := r.srv.purged(r.ctx, files)
	if err != nil || gone.contains(r.done) {
		return err
	}
	reset.Err = fmt.Errorf("%w (read %s, begun anew behind %q)", reset.Err, r.done, gone)
	return reset
}

// sameFile reports whether the server's file of the position's name was begun when the
// one that was read was.
func (r *reader) sameFile(p *resume) (bool, error) {
	d := r.dumpAs(r, "/file")
	begun := uint32(0)
	d.idle = func() error { return nil }
	d.handle = func(e *replication.BinlogEvent) error {
		if e.Header.EventType != replication.FORMAT_DESCRIPTION_EVENT {
			return nil
		}
		begun = e.Header.Timestamp
		return errStopped
	}
	err := d.run(r.ctx, place{p.File, 4}, nil)
	if err != nil && !errors.Is(err, errStopped) {
		return false, fmt.Errorf("looking when %s was begun: %w", p.File, err)
	}
	return begun == p.FileTime, nil
}

// logFile is a file of the binary log.
type logFile struct {
	name string
	size uint64
}

// logFiles lists the files of the log, the oldest first.
func (s *server) logFiles(ctx context.Context) ([]logFile, error) {
	rows, err := s.db.QueryContext(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return nil, fmt.Errorf("listing the binary logs: %w", err)
	}
	var files []logFile
	err = scanAll(rows, func() error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		var f logFile
		dest := []any{&f.name, &f.size}
		for range columns[2:] {
			dest = append(dest, new(sql.RawBytes))
		}
		err = rows.Scan(dest...)
		files = append(files, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the binary logs: %w", err)
	}
	return files, nil
}

// purged returns the transactions before the oldest of the log's files.
func (s *server) purged(ctx context.Context, files []logFile) (gtidSet, error) {
	query, args := "SELECT @@global.gtid_purged", []any(nil)
	if s.flavor == flavorMariaDB {
		if len(files) == 0 {
			return parseGTIDs(s.flavor, "")
		}
		query, args = "SELECT BINLOG_GTID_POS(?, 4)", []any{files[0].name}
	}
	var text string
	if err := s.db.QueryRowContext(ctx, query, args...).Scan(&text); err != nil {
		return nil, fmt.Errorf("asking for the purged transactions: %w", err)
	}
	return parseGTIDs(s.flavor, text)
}
