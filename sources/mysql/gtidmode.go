package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-data/daybook/pipeline"
)

// codeGTIDMode is of a log with transactions that its server does not hand out under the gtid_mode that it has now: those
// with a GTID under OFF, those without under ON. Nothing is wrong with the log.
const codeGTIDMode = "gtid-mode"

const permissive = "SET GLOBAL gtid_mode = ON_PERMISSIVE (from OFF by way of OFF_PERMISSIVE), restart the pipeline, and set the mode that is wanted once " +
	"`daybook status` shows that the source has read up to there"

// givesGTIDs asks whether every transaction gets a GTID.
func (s *server) givesGTIDs(ctx context.Context) (bool, error) {
	if s.flavor == flavorMariaDB {
		return true, nil
	}
	var mode string
	err := s.db.QueryRowContext(ctx, "SELECT @@global.gtid_mode").Scan(&mode)
	// ON_PERMISSIVE lets transactions without a GTID in: then the set is not all.
	return mode == "ON", err
}

// otherMode makes of a stop for the server's gtid_mode an error that is tried again, where the mode is another one than
// when the reader began: what it could not read by GTIDs it then reads by file, or the other way round.
func (r *reader) otherMode(err error) error {
	var stop *pipeline.StopError
	if !errors.As(err, &stop) || stop.Code != codeGTIDMode {
		return err
	}
	if now, asked := r.srv.givesGTIDs(r.ctx); asked == nil && now == r.srv.gtids {
		return err
	}
	return fmt.Errorf("the server's gtid_mode was changed: %w", stop.Err)
}
