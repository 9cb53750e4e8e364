package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// preflight checks what has to be right before the first event is read.
func (s *Source) preflight(ctx context.Context, r *reader) error {
	v, err := r.srv.variables(ctx, "log_bin", "binlog_format", "binlog_row_image", "binlog_row_value_options", "binlog_row_metadata",
		"binlog_expire_logs_seconds", "expire_logs_days", "server_id", "log_replica_updates", "log_slave_updates", "binlog_alter_two_phase")
	if err != nil {
		return err
	}
	stop := func(code, variable, want string) error {
		return &pipeline.StopError{Code: code, Where: s.cfg.Addr, Err: fmt.Errorf("%s is %s", variable, v[variable]),
			Fix: fmt.Sprintf("SET GLOBAL %s = %s, and let sessions that are open reconnect", variable, want)}
	}
	switch {
	case v["log_bin"] != "ON" && v["log_bin"] != "1":
		return &pipeline.StopError{Code: "no-binlog", Where: s.cfg.Addr, Err: errors.New("the server writes no binary log"), Fix: "start it with log_bin and binlog_format=ROW"}
	case v["binlog_format"] != "" && v["binlog_format"] != "ROW":
		return stop("binlog-format", "binlog_format", "ROW")
	case v["binlog_row_image"] != "" && v["binlog_row_image"] != "FULL":
		return stop("incomplete-rows", "binlog_row_image", "FULL")
	case v["binlog_row_value_options"] != "":
		return stop("incomplete-rows", "binlog_row_value_options", "''")
	case v["binlog_alter_two_phase"] == "ON": // then an ALTER is logged before it has happened, and again after
		return stop("alter-two-phase", "binlog_alter_two_phase", "OFF")
	case fmt.Sprint(serverID(s.cfg.ServerID, s.name, false)) == v["server_id"]:
		return &pipeline.StopError{Code: "server-id-taken", Where: s.cfg.Addr, Err: fmt.Errorf("server_id %s is the server's own", v["server_id"]), Fix: "give the source another server_id, or none"}
	}
	s.warnRetention(v)
	if v["log_replica_updates"] == "OFF" || v["log_replica_updates"] == "" && v["log_slave_updates"] == "OFF" {
		if err := s.refuseSilentReplica(ctx, r.srv); err != nil {
			return err
		}
	}
	return s.rivals(ctx, r.srv)
}

// refuseSilentReplica stops on a replica that does not log what it replicates.
func (s *Source) refuseSilentReplica(ctx context.Context, srv *server) error {
	query := "SHOW SLAVE STATUS"
	if srv.flavor == flavorMySQL && srv.number >= 80022 {
		query = "SHOW REPLICA STATUS"
	}
	rows, err := srv.db.QueryContext(ctx, query)
	if err != nil {
		s.log.Debug("the server does not say whether it is a replica", slog.Any("error", err))
		return nil
	}
	replica := false
	if err := scanAll(rows, func() error { replica = true; return nil }); err != nil || !replica {
		return err
	}
	return &pipeline.StopError{Code: "replica-without-log", Where: s.cfg.Addr, Err: errors.New("the server is a replica and does not log what it replicates (log_replica_updates is OFF)"),
		Fix: "start it with log_replica_updates=ON, or read from its source"}
}

// barred returns the captured tables whose changes the server does not log, or not all:
// those of databases that it keeps out of its log, and those with foreign keys that act.
func (r *reader) barred(end logEnd, list []tableInfo) (map[tableName]*pipeline.StopError, error) {
	bars := map[tableName]*pipeline.StopError{}
	only, not := strings.Split(end.only, ","), strings.Split(end.not, ",")
	for _, t := range list {
		if end.only != "" && !slices.Contains(only, t.name.db) || slices.Contains(not, t.name.db) {
			bars[r.reg.id(t.name.db, t.name.table)] = &pipeline.StopError{Code: codeFiltered, Where: t.name.String(), Err: errors.New("the server leaves its database out of the binary log (binlog-do-db, binlog-ignore-db)"),
				Fix: fmt.Sprintf("start the server without these filters, or take the table out with \"!%s\" in `tables`", t.name)}
		}
	}
	if !r.srv.hidesCascades() || r.cfg.Cascades == cascadesIgnore {
		return bars, nil
	}
	var databases []any
	for _, t := range list {
		if !slices.Contains(databases, any(t.name.db)) {
			databases = append(databases, t.name.db)
		}
	}
	acting, err := r.cascades(databases...)
	if err != nil {
		return nil, err
	}
	for n, constraint := range acting {
		if _, twice := bars[n]; !twice && r.reg.captured(n) {
			bars[n] = unseenCascade(n.String() + " (" + constraint + ")")
		}
	}
	return bars, nil
}

// hidesCascades reports whether rows that foreign keys change are missing from the
// log: the engine does that itself, below it. MySQL logs them from 9.6 on.
func (s *server) hidesCascades() bool { return s.flavor == flavorMariaDB || s.number < 90600 }

// unseenCascade is the error for a table whose rows a foreign key may change unseen.
func unseenCascade(where string) *pipeline.StopError {
	return &pipeline.StopError{Code: "unlogged-cascade", Where: where, Err: errors.New("a foreign key deletes or changes rows of the table itself, and this server does not log that"),
		Fix: "make the foreign key RESTRICT, or accept with `cascades: ignore` that these changes are not seen"}
}

// cascades returns the tables of the databases with foreign keys that change their rows,
// and the name of one of these keys. It does not ask for those of the whole server, for
// which MariaDB opens every table that there is.
func (r *reader) cascades(databases ...any) (map[tableName]string, error) {
	acting := map[tableName]string{}
	if len(databases) == 0 {
		return acting, nil
	}
	rows, err := r.srv.db.QueryContext(r.ctx, `SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
		WHERE (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))
		AND CONSTRAINT_SCHEMA IN (?`+strings.Repeat(", ?", len(databases)-1)+")", databases...)
	if err != nil {
		return nil, fmt.Errorf("listing foreign keys: %w", err)
	}
	err = scanAll(rows, func() error {
		var db, table, constraint string
		err := rows.Scan(&db, &table, &constraint)
		acting[r.reg.id(db, table)] = constraint
		return err
	})
	return acting, err
}

// variables returns the server's global variables of the given names, those it has.
func (s *server) variables(ctx context.Context, names ...string) (map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "', '")+"')")
	if err != nil {
		return nil, fmt.Errorf("asking for the server's settings: %w", err)
	}
	v := map[string]string{}
	err = scanAll(rows, func() error {
		var name, value string
		err := rows.Scan(&name, &value)
		v[strings.ToLower(name)] = value
		return err
	})
	return v, err
}

// warnRetention warns of a binary log that is kept for less than a day: a source that
// stands still for longer has to start anew.
func (s *Source) warnRetention(v map[string]string) {
	var keep time.Duration
	if n := v["binlog_expire_logs_seconds"]; n != "" && n != "0" {
		keep, _ = time.ParseDuration(n + "s")
	} else if n := v["expire_logs_days"]; n != "" && n != "0" && !strings.HasPrefix(n, "0.000000") {
		days, _ := time.ParseDuration(n + "h")
		keep = days * 24
	}
	if keep > 0 && keep < 24*time.Hour {
		s.log.Warn("the server keeps its binary log for less than a day; a source that stands still for longer must start anew",
			slog.Duration("kept", keep), slog.String("variable", "binlog_expire_logs_seconds"))
	}
}

// rivals looks for another replica with our id: the server would hang up on one of
// the two, over and over.
func (s *Source) rivals(ctx context.Context, srv *server) error {
	query := "SHOW SLAVE HOSTS"
	if srv.flavor == flavorMySQL && srv.number >= 80022 {
		query = "SHOW REPLICAS"
	}
	rows, err := srv.db.QueryContext(ctx, query)
	if err != nil {
		s.log.Debug("the server does not list its replicas to this account", slog.Any("error", err))
		return nil
	}
	ours := fmt.Sprint(serverID(s.cfg.ServerID, s.name, false))
	rival := ""
	err = scanAll(rows, func() error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		var id, host sql.NullString
		dest := make([]any, len(columns))
		for i, name := range columns {
			switch strings.ToLower(name) {
			case "server_id":
				dest[i] = &id
			case "host":
				dest[i] = &host
			default:
				dest[i] = new(sql.RawBytes)
			}
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		// One with our own name is what is left of a run before this one.
		if id.String == ours && host.String != s.name {
			rival = host.String
		}
		return nil
	})
	if err != nil || rival == "" {
		return err
	}
	return &pipeline.StopError{Code: "server-id-taken", Where: s.cfg.Addr,
		Err: fmt.Errorf("the replica %q is registered with our server_id %s", rival, ours), Fix: "give one of the two another server_id"}
}

// warnUnmatched names the patterns without wildcards that match no table.
func (s *Source) warnUnmatched(list []tableInfo) {
	for _, p := range s.cfg.Tables {
		if strings.ContainsAny(p, "*?!/") {
			continue
		}
		if !slices.ContainsFunc(list, func(t tableInfo) bool { return strings.EqualFold(t.name.String(), p) }) {
			s.log.Warn("no such table yet", slog.String("table", p))
		}
	}
	if len(list) == 0 {
		s.log.Warn("no table is captured yet: none that the account may read matches", slog.Any("tables", s.cfg.Tables))
	}
}

// purged is the error for a position that the server's log no longer reaches.
func purged(cfg *Config, err error) error {
	return &pipeline.StopError{Code: "binlog-purged", Where: cfg.Addr, Err: err,
		Fix: anew + "; and keep the binary log longer (binlog_expire_logs_seconds)"}
}

// reachable checks that the server can go on from the position without a gap.
func (s *Source) reachable(ctx context.Context, r *reader, p *resume) error {
	switch {
	case r.srv.flavor == flavorMariaDB && r.done != nil:
		return r.sameLog(p) // the server checks the rest
	case r.done != nil:
		if err := s.reachableGTIDs(ctx, r); err != nil {
			return err
		}
		return r.sameLog(p)
	case p.Server != r.srv.uuid:
		return &pipeline.StopError{Code: "other-server", Where: s.cfg.Addr,
			Err: fmt.Errorf("the position %s is one of server %s, this is %s, and without GTIDs (gtid_mode=ON) it means nothing here", p.place, p.Server, r.srv.uuid),
			Fix: "lead the address back to that server, or " + anew}
	}
	return s.reachableFile(ctx, r, p)
}

func (s *Source) reachableGTIDs(ctx context.Context, r *reader) error {
	executed, _, err := r.srv.executed(ctx)
	if err != nil {
		return err
	}
	if !executed.contains(r.done) {
		return &pipeline.StopError{Code: "other-server", Where: s.cfg.Addr,
			Err: fmt.Errorf("the server has not executed all transactions that were read before (%s of %s)", executed, r.done),
			Fix: "lead the address to a server that has them, or " + anew}
	}
	gone, err := r.srv.purged(ctx, nil)
	if err != nil {
		return err
	}
	if !r.done.contains(gone) {
		return purged(&s.cfg, fmt.Errorf("the server has purged transactions that were not read: purged %s, read %s", gone, r.done))
	}
	return nil
}

func (s *Source) reachableFile(ctx context.Context, r *reader, p *resume) error {
	files, err := r.srv.logFiles(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(f logFile) bool { return f.name == p.File })
	if i < 0 {
		return purged(&s.cfg, fmt.Errorf("the server no longer has the file %s", p.File))
	}
	if size := files[i].size; p.Pos > size {
		return &pipeline.StopError{Code: "binlog-reset", Where: p.place.String(), Err: fmt.Errorf("the file has %d bytes: the binary log was reset", size),
			Fix: anew}
	}
	return nil
}
