package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Source reads one server. It is made by New and run by Run; Report may be called at
// any time.
type Source struct {
	cfg  Config
	env  pipeline.SourceEnv
	name string // under which it registers as a replica
	tls  *tls.Config
	mine map[tableName]bool // tables that this process has parked
	see  progress
	log  *slog.Logger
}

var (
	_ pipeline.Source    = (*Source)(nil)
	_ pipeline.Reporter  = (*Source)(nil)
	_ pipeline.Describer = (*Source)(nil)
)

// New returns a source. It reads the files that the configuration names, and does not
// connect.
func New(cfg Config, env pipeline.SourceEnv) (*Source, error) {
	if _, err := newSelection(cfg.Tables, false); err != nil {
		return nil, err
	}
	tlsConfig, err := cfg.TLS.config(cfg.Addr)
	if err != nil {
		return nil, err
	}
	if cfg.ChunkRows <= 0 {
		cfg.ChunkRows = 10_000
	}
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Source{
		cfg: cfg, env: env, tls: tlsConfig, log: log,
		name: replicaName(env.Pipeline, env.Name), mine: map[tableName]bool{},
	}, nil
}

// replicaName is how the server lists this source; MariaDB takes 60 characters.
func replicaName(pipelineName, source string) string {
	name := "daybook/" + pipelineName + "/" + source
	if len(name) > 55 { // room for a suffix
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		name = fmt.Sprintf("%.46s~%08x", name, h.Sum32())
	}
	return name
}

// serverID returns the id given, or one made of the name, in the upper half of the
// range so that it keeps clear of what people give their servers.
func serverID(given int, name string, derive bool) uint32 {
	if given != 0 && !derive {
		return uint32(given)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32() | 1<<31
}

// Report tells phase, place and progress.
func (s *Source) Report() pipeline.Report { return s.see.report() }

// Run reads until ctx ends; see pipeline.Source.
func (s *Source) Run(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
	s.see.setPhase("connecting")
	s.see.setParked(nil)
	srv, err := connect(ctx, &s.cfg, s.tls)
	if err != nil {
		return err
	}
	defer srv.close()
	sel, err := newSelection(s.cfg.Tables, srv.fold)
	if err != nil {
		return err
	}
	r := &reader{
		ctx: ctx, cfg: &s.cfg, tls: s.tls, name: s.name, srv: srv, out: out, see: &s.see, log: s.log,
		reg: newRegistry(srv, sel, &s.cfg, s.env.Name), bindings: map[uint64]*binding{}, prepared: map[string]*preparedXA{},
		parked: map[tableName]parkedTable{}, mine: s.mine, tx: transaction{rows: map[string]int64{}},
	}
	defer r.close()
	if err := s.preflight(ctx, r); err != nil {
		return err
	}
	if from == "" {
		err = s.begin(ctx, r)
	} else {
		err = s.goOn(ctx, r, from)
	}
	if err != nil {
		return srv.explain(err, &s.cfg)
	}
	if s.env.Once {
		if err := s.stopAtEnd(ctx, r); err != nil {
			return err
		}
	}
	if err := s.stream(ctx, r); err != nil {
		return err
	}
	return r.parkedError()
}

// stream runs the dump from the reader's place.
func (s *Source) stream(ctx context.Context, r *reader) error {
	if r.snap == nil {
		s.see.setPhase("catch-up")
	} else {
		s.see.setPhase("snapshot")
	}
	s.see.emitted(0, r.safe.place, 0)
	err := r.dumpAs(r, "").run(ctx, r.safe.place, r.done)
	switch {
	case errors.Is(err, errStopped):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return r.otherMode(r.whyUnreadable(err))
}

// stopAtEnd makes the reader stop at what is the end of the log now, when the
// snapshot is over.
func (s *Source) stopAtEnd(ctx context.Context, r *reader) error {
	end, err := r.srv.end(ctx)
	if err != nil {
		return err
	}
	r.stop = func(idle bool) bool {
		if r.snap != nil {
			return false
		}
		// A server that passes over transactions we have need not say where it is.
		return !r.here().before(end.place) || idle && r.done != nil && r.done.contains(end.gtids)
	}
	return nil
}

// anew is the way out where the log can't be read on: rows that went meanwhile are in no
// record, so what the sinks have is replaced.
const anew = "give the source another name and `start: replace`, to start anew with a snapshot"

// begin makes a first start: the place in the log and the definitions that are valid
// there are fixed, and made durable, before the first row is read.
func (s *Source) begin(ctx context.Context, r *reader) error {
	list, end, err := s.settleStart(ctx, r)
	if err != nil {
		return err
	}
	s.warnUnmatched(list)
	r.at, r.safe, r.reached, r.native = end.place, mark{place: end.place}, end.place, true
	if r.srv.gtids {
		r.done = end.gtids
	}
	if err := r.parkUnfit(end, list); err != nil {
		return err
	}
	s.log.Info("first start", slog.String("at", end.String()), slog.Int("tables", len(list)), slog.String("start", s.cfg.Start))
	if s.cfg.Start != startLatest {
		m := &snapshotMark{}
		for _, t := range list {
			if _, parked := r.parked[r.reg.id(t.name.db, t.name.table)]; !parked {
				m.Wait = append(m.Wait, waiting{DB: t.name.db, Table: t.name.table, ID: end.String()})
			}
		}
		r.snap = newSnapshot(r, m)
		if s.cfg.Start == startReplace {
			r.emptyAll(m.Wait)
		}
	} else {
		r.snapDone = &snapshotMark{}
	}
	s.estimates(list)
	r.moved = true
	if err := r.emit(); err != nil {
		return err
	}
	return r.out.Flush(ctx)
}

// beginOwn begins a transaction for what a start itself emits: its positions name this place.
func (r *reader) beginOwn() *replication.EventHeader {
	r.newTransaction([]byte("u:" + r.at.String()))
	return &replication.EventHeader{Timestamp: uint32(time.Now().Unix())}
}

// emptyAll voids what the sinks have of tables that another source brought them.
func (r *reader) emptyAll(tables []waiting) {
	h := r.beginOwn()
	for _, w := range tables {
		r.emitTruncate(h, r.reg.id(w.DB, w.Table))
	}
	r.newTransaction(nil)
	r.beyond = false
}

// settleStart reads the definitions and finds a place of the log at which they were
// valid: no statement may have changed one between.
func (s *Source) settleStart(ctx context.Context, r *reader) ([]tableInfo, logEnd, error) {
	for {
		before, err := r.srv.end(ctx)
		if err != nil {
			return nil, before, err
		}
		list, err := r.reg.load(ctx)
		if err != nil {
			return nil, before, err
		}
		after, err := r.srv.end(ctx)
		if err != nil {
			return nil, after, err
		}
		set := before.gtids
		if !r.srv.gtids {
			set = nil
		}
		changed, err := r.scanDDL(before.place, set, after.place, before.place, func(st statement, c *cursor) bool {
			return r.concerns(st, c, func(n tableName) bool {
				return n.table == "" && r.reg.hasDatabase(n.db) || n.table != "" && r.reg.captured(n)
			})
		})
		if err != nil {
			return nil, after, err
		}
		if !changed {
			return list, after, nil
		}
	}
}

func (s *Source) estimates(list []tableInfo) {
	s.see.mu.Lock()
	defer s.see.mu.Unlock()
	s.see.estimate = map[string]uint64{}
	for _, t := range list {
		s.see.estimate[t.name.String()] = t.rows
	}
}

// goOn resumes from a position.
func (s *Source) goOn(ctx context.Context, r *reader, from pipeline.Position) error {
	p, err := decodeResume(from)
	if err != nil {
		return err
	}
	if err := r.reg.unpack(p.Tables); err != nil {
		return err
	}
	r.at, r.safe = p.place, mark{p.place, p.FileTime}
	if p.Server == r.srv.uuid {
		r.reached, r.native = p.place, true
		r.fileTime = p.FileTime
	}
	if p.GTIDs != "" && r.srv.gtids {
		if r.done, err = parseGTIDs(r.srv.flavor, p.GTIDs); err != nil {
			return err
		}
	}
	if err := s.reachable(ctx, r, p); err != nil {
		return err
	}
	if r.snapDone = p.Snapshot; p.Snapshot != nil && len(p.Snapshot.Wait) > 0 {
		r.snap, r.snapDone = newSnapshot(r, p.Snapshot), nil
		for _, w := range p.Snapshot.Wait {
			if n := r.reg.id(w.DB, w.Table); !r.reg.captured(n) {
				r.snap.forget(n)
			}
		}
	}
	list, err := r.srv.listTables(ctx, r.reg.sel)
	if err != nil {
		return err
	}
	s.estimates(list)
	end, err := r.srv.end(ctx)
	if err != nil {
		return err
	}
	barred, err := r.barred(end, list)
	if err != nil {
		return err
	}
	h := r.beginOwn()
	if err := r.restore(h, p.Parked, barred); err != nil {
		return err
	}
	s.addTables(h, r, p, list)
	r.newTransaction(nil)
	r.beyond = false
	return r.emit()
}

// addTables queues the tables that the configuration selects now and did not when
// the position was written.
func (s *Source) addTables(h *replication.EventHeader, r *reader, p *resume, list []tableInfo) {
	old, err := newSelection(p.Patterns, r.srv.fold)
	if err != nil {
		return // patterns of another version; what they selected can't be told
	}
	for _, t := range list {
		n := r.reg.id(t.name.db, t.name.table)
		if _, parked := r.parked[n]; parked || old.has(n.db, n.table) || s.cfg.Start == startLatest {
			continue
		}
		s.log.Info("a table is new in the configuration and will be read by a snapshot", slog.String("table", n.String()))
		if _, known := r.reg.tables[n]; known {
			r.readAnew(h, n) // it may have been captured before
		} else {
			r.queue(n)
		}
	}
}
