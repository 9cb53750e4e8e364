package mysql

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
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
	at       place
	fileTime uint32
	done     gtidSet // the transactions behind us
	safe     mark    // the last place to resume from
	reached  place   // the furthest place handled on this server, in this run or before
	native   bool    // all that was handled lies before places of this server that come from now on
	moved    bool    // safe is ahead of the last position emitted
	beyond   bool    // records were collected that lie behind safe

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
	if r.batch.full() {
		return r.emit()
	}
	return nil
}

// structural handles the two kinds of event that the library decodes.
func (r *reader) structural(e *replication.BinlogEvent) error {
	switch t := e.Event.(type) {
	case *replication.RotateEvent:
		r.at = place{string(t.NextLogName), t.Position}
		if e.Header.LogPos != 0 || t.Position == 4 {
			r.fileTime = 0
		}
		clear(r.bindings)
		return r.boundary()
	case *replication.FormatDescriptionEvent:
		r.advance(e.Header)
		clear(r.bindings)
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
	case replication.INCIDENT_EVENT:
		return &pipeline.StopError{Code: "binlog-incident", Where: r.at.String(),
			Err: errors.New("the server logged an incident: changes before it may be missing from the log"),
			Fix: "check the server's error log, then " + anew}
	case replication.EXECUTE_LOAD_QUERY_EVENT:
		return r.loadQuery(b)
	}
	return nil
}

// beginMySQL starts a transaction. Whatever was open is void: the server begins
// anew after a reconnect.
func (r *reader) beginMySQL(h *replication.EventHeader, b []byte) error {
	var e replication.GTIDEvent
	source := ""
	if h.EventType == replication.GTID_TAGGED_LOG_EVENT {
		var tagged replication.GtidTaggedLogEvent
		if err := tagged.Decode(b); err != nil {
			return fmt.Errorf("decoding the GTID event at %s: %w", r.at, err)
		}
		e = tagged.GTIDEvent
		source = formatUUID(e.SID)
		if tag := tagged.Tag.String(); tag != "" {
			source += ":" + tag
		}
	} else if err := e.Decode(b); err != nil {
		return fmt.Errorf("decoding the GTID event at %s: %w", r.at, err)
	} else if h.EventType == replication.GTID_EVENT {
		if !bytes.Equal(r.sid, e.SID) {
			r.sid, r.sidText = bytes.Clone(e.SID), formatUUID(e.SID)
		}
		source = r.sidText
	}
	r.begin(h, gtid{source: source, number: uint64(e.GNO)}, source != "")
	r.tx.micros = int64(e.ImmediateCommitTimestamp)
	return nil
}

func formatUUID(b []byte) string {
	const hex = "0123456789abcdef"
	var s [36]byte
	n := 0
	for i, c := range b[:16] {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			s[n] = '-'
			n++
		}
		s[n], s[n+1] = hex[c>>4], hex[c&15]
		n += 2
	}
	return string(s[:])
}

// The flags of MariaDB's GTID event that matter here.
const (
	mariaStandalone = 1
	mariaPreparedXA = 64
)

func (r *reader) beginMariaDB(h *replication.EventHeader, b []byte) error {
	var e replication.MariadbGTIDEvent
	if len(b) < 13 {
		return fmt.Errorf("decoding the GTID event at %s: %w", r.at, errShort)
	}
	if err := e.Decode(b); err != nil {
		return fmt.Errorf("decoding the GTID event at %s: %w", r.at, err)
	}
	r.begin(h, gtid{domain: e.GTID.DomainID, server: h.ServerID, number: e.GTID.SequenceNumber}, true)
	// No BEGIN follows.
	r.tx.open = e.Flags&mariaStandalone == 0
	if e.Flags&mariaPreparedXA != 0 {
		id, err := mariaXID(b[13:], e.IsGroupCommit())
		if err != nil {
			return fmt.Errorf("decoding the GTID event at %s: %w", r.at, err)
		}
		r.tx.xa = &preparedXA{id: id}
	}
	return nil
}

func (r *reader) begin(h *replication.EventHeader, g gtid, hasGTID bool) {
	id := r.tx.id[:0]
	if hasGTID {
		id = g.append(id)
	} else {
		id = append(id, r.at.File...)
		id = append(id, ':')
		id = strconv.AppendUint(id, r.at.Pos, 10)
	}
	r.newTransaction(id)
	r.tx.gtid, r.tx.hasGTID = g, hasGTID
}

// newTransaction forgets the one before, but for its memory.
func (r *reader) newTransaction(id []byte) {
	rows := r.tx.rows
	clear(rows)
	r.tx = transaction{id: id, rows: rows}
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

// Positions cost something to make, so that they are given with one Emit in a while,
// and where nothing of interest happens even more rarely.
const (
	placeEvery = 100 * time.Millisecond
	moveEvery  = time.Second
)

// flush hands on what was collected; the server has nothing more to send just now.
func (r *reader) flush() error {
	if len(r.batch.records) == 0 && (!r.moved || time.Since(r.placed) < moveEvery) {
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
