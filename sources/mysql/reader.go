package mysql

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"
)

// reader turns the events of the log into records. It is a plain value used by one
// goroutine at a time; the dump calls it.
type reader struct {
	ctx  context.Context // of Run; a reader lives as long as one Run
	cfg  *Config
	tls  *tls.Config
	name string // under which it registers as a replica
	srv  *server
	reg  *registry
	out  pipeline.Emitter
	see  *progress
	log  *slog.Logger

	// at is the place behind the last event handled. Between transactions it is a
	// place to resume from.
	at        place
	fileTime  uint32
	file      fileState
	watched   time.Time // when watchLog looked last, and where the reader was
	watchedAt place
	done      gtidSet // the transactions behind us
	safe      mark    // the last place to resume from
	reached   place   // the furthest place handled on this server, in this run or before
	unaltered place   // from here up to there no ALTER DATABASE is logged; see databasesAltered
	native    bool    // all that was handled lies before places of this server that come from now on
	moved     bool    // safe is ahead of the last position emitted
	beyond    bool    // records were collected that lie behind safe

	tx       transaction
	bindings map[uint64]*binding
	batch    batch
	placed   time.Time // when a position was last emitted
	now      int64     // wall clock in ms, for the envelope; read once an event
	logged   uint32    // when the last transaction was logged, in seconds

	prepared map[string]*preparedXA
	snap     *snapshot // nil when there is none, or none any more
	snapDone *snapshotMark
	stop     func(idle bool) bool // reports that all that was asked for is there

	parked map[tableName]parkedTable // see parked.go
	mine   map[tableName]bool        // those that this process parked

	sid      []byte // the last transaction's source as bytes, and as text
	sidText  string
	rowHead  []byte // of the envelope's source, up to the row's number
	shadow   *scan  // set where only DDL is looked for
	zstd     *zstd.Decoder
	unpacked []byte // the event of a compressed transaction that is handled

	oldKey, newKey []byte // of the row being read
}

// mark is a place to resume from.
type mark struct {
	place
	fileTime uint32
}

// transaction is what is known of the transaction being read.
type transaction struct {
	open    bool // between BEGIN and its end
	id      []byte
	gtid    gtid
	hasGTID bool
	micros  int64       // commit time where the log has it, else 0
	xa      *preparedXA // set inside an XA transaction
	// rows counts the records of each table, for their positions. These must not hang on
	// which other tables are captured: that may change between two readings.
	rows map[string]int64
	held heldBack
}

// binding is a table map met before, with what it led to.
type binding struct {
	raw        []byte
	generation int
	m          *tableMap
	codec      *rowCodec // nil where the table is not captured
	bound      bool
}

// event takes the next event from the dump.
func (r *reader) event(e *replication.BinlogEvent) error {
	g, ok := e.Event.(*replication.GenericEvent)
	if !ok {
		return r.structural(e)
	}
	h := e.Header
	r.advance(h)
	if err := r.body(h, g.Data); err != nil {
		return err
	}
	return r.emitFull()
}

// structural handles the two kinds of event that the library decodes.
func (r *reader) structural(e *replication.BinlogEvent) error {
	switch t := e.Event.(type) {
	case *replication.RotateEvent:
		if err := r.turn(e.Header, string(t.NextLogName)); err != nil {
			return err
		}
		r.at = place{string(t.NextLogName), t.Position}
		if e.Header.LogPos != 0 || t.Position == 4 {
			r.fileTime = 0
		}
		clear(r.bindings)
		return r.boundary()
	case *replication.FormatDescriptionEvent:
		r.advance(e.Header)
		clear(r.bindings)
		r.file = fileBegun
		return r.formatDescription(e.Header)
	}
	return nil
}

// formatDescription compares the file's age with the one the position knows.
func (r *reader) formatDescription(h *replication.EventHeader) error {
	if r.fileTime != 0 && r.fileTime != h.Timestamp && r.done == nil {
		return &pipeline.StopError{Code: "binlog-reset", Where: r.at.String(),
			Err: errors.New("the file of this name is not the one that was read before: the binary log was reset"),
			Fix: anew}
	}
	r.fileTime = h.Timestamp
	return r.boundary()
}

// advance moves the place behind the event. The header counts 32 bits only, and
// MariaDB leaves it zero inside transactions from 11.4 on.
func (r *reader) advance(h *replication.EventHeader) {
	if h.LogPos == 0 || h.Flags&replication.LOG_EVENT_ARTIFICIAL_F != 0 {
		return
	}
	high := r.at.Pos &^ (1<<32 - 1)
	pos := high | uint64(h.LogPos)
	if pos < r.at.Pos && r.at.Pos-pos > 1<<31 {
		pos += 1 << 32
	}
	r.at.Pos = pos
}

// body handles an event by its kind. Events inside a compressed transaction come
// here too.
func (r *reader) body(h *replication.EventHeader, b []byte) error {
	switch h.EventType {
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT:
		return r.beginMySQL(h, b)
	case replication.MARIADB_GTID_EVENT:
		return r.beginMariaDB(h, b)
	case replication.QUERY_EVENT, replication.MARIADB_QUERY_COMPRESSED_EVENT:
		return r.query(h, b)
	case replication.XID_EVENT:
		return r.commit(h)
	case replication.TABLE_MAP_EVENT:
		return r.tableMap(b)
	case replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2, replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1,
		replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2, replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1,
		replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2, replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1,
		replication.PARTIAL_UPDATE_ROWS_EVENT, replication.WRITE_ROWS_EVENTv0, replication.UPDATE_ROWS_EVENTv0, replication.DELETE_ROWS_EVENTv0:
		return r.rows(h, b)
	case replication.TRANSACTION_PAYLOAD_EVENT:
		return r.payload(b)
	case replication.XA_PREPARE_LOG_EVENT:
		return r.prepare(h, b)
	case replication.HEARTBEAT_EVENT:
		return r.heartbeat(h, b)
	case replication.STOP_EVENT:
		r.file = fileEnded
	case replication.INCIDENT_EVENT:
		return &pipeline.StopError{Code: "binlog-incident", Where: r.at.String(),
			Err: errors.New("the server logged an incident: changes before it may be missing from the log"),
			Fix: "check the server's error log, then " + anew}
	case replication.EXECUTE_LOAD_QUERY_EVENT:
		return r.loadQuery(b)
	}
	return nil
}

// commit ends the transaction: from here on it need not be read again. Promise 1.
func (r *reader) commit(h *replication.EventHeader) error {
	if r.tx.hasGTID && r.done != nil {
		r.done.add(r.tx.gtid)
	}
	r.newTransaction(r.tx.id[:0])
	r.logged = h.Timestamp
	r.see.transactions.Add(1)
	if err := r.boundary(); err != nil {
		return err
	}
	if r.batch.ripe() || r.moved && time.Since(r.placed) > placeEvery {
		return r.emit()
	}
	return nil
}

// boundary is called between two transactions.
func (r *reader) boundary() error {
	if r.tx.open || r.tx.hasGTID {
		return nil
	}
	// The protocol can't resume beyond 4 GiB, and there is a new file soon.
	if r.at.Pos < 1<<32 && len(r.prepared) == 0 {
		if here := (mark{r.at, r.fileTime}); here != r.safe {
			r.safe, r.moved = here, true
		}
		r.beyond = false
	} else {
		r.beyond = true
	}
	if r.reached.before(r.at) {
		r.reached = r.at
	}
	if r.snap != nil {
		if err := r.snap.boundary(); err != nil {
			return err
		}
	}
	return r.finished(false)
}

// here is how far the stream is. A server that is asked to go on behind a set of
// transactions begins at a file's start and need not say what it passes over; what was
// handled before counts.
func (r *reader) here() place {
	if r.at.before(r.reached) {
		return r.reached
	}
	return r.at
}

// heartbeat moves the place on while the server has nothing to log, or passes over
// what it need not send.
func (r *reader) heartbeat(h *replication.EventHeader, b []byte) error {
	if r.tx.open || r.tx.hasGTID || h.LogPos == 0 {
		return nil
	}
	p := place{string(b), uint64(h.LogPos)}
	if p.File != r.at.File || p.Pos < r.at.Pos {
		return nil
	}
	r.at = p
	return r.boundary()
}

// idle is called when the server has sent nothing for a moment.
func (r *reader) idle() error {
	if err := r.flush(); err != nil {
		return err
	}
	if r.tx.open || r.tx.hasGTID {
		return nil
	}
	if r.snap != nil {
		if err := r.snap.idle(); err != nil {
			return err
		}
	}
	if err := r.watchLog(); err != nil {
		return err
	}
	r.see.idle()
	return r.finished(true)
}

// finished ends the dump when all that was asked for is there.
func (r *reader) finished(idle bool) error {
	if r.stop == nil || !r.stop(idle) {
		return nil
	}
	r.placed = time.Time{}
	if err := r.emit(); err != nil {
		return err
	}
	return errStopped
}

// tableMap binds the rows that follow to a table. The same map comes before every
// statement, so it is compared before it is decoded.
func (r *reader) tableMap(b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("decoding a table map at %s: %w", r.at, errShort)
	}
	id := mysql.FixedLengthInt(b[:6])
	if known := r.bindings[id]; known != nil && known.generation == r.reg.generation && bytes.Equal(known.raw, b) {
		return nil
	}
	m, err := parseTableMap(b)
	if err != nil {
		return err
	}
	r.bindings[id] = &binding{raw: bytes.Clone(b), generation: r.reg.generation, m: m}
	return nil
}

// queue has the snapshot read a table from its first row on.
func (r *reader) queue(n tableName) {
	if r.snap == nil {
		r.snap, r.snapDone = newSnapshot(r, &snapshotMark{}), nil
	}
	r.snap.add(n, r.at.String())
}

// close lets go of what a reader holds besides memory.
func (r *reader) close() {
	if r.zstd != nil {
		r.zstd.Close()
	}
}
