package mysql

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/go-mysql-org/go-mysql/replication"
)

// The rows of an XA transaction are logged when it is prepared; whether they count is
// logged later, in a transaction of its own. Until then they are held in memory, and
// the source's position stays in front of them.

// preparedXA is an XA transaction whose rows have been read.
type preparedXA struct {
	id    string
	rows  []heldRows
	bytes int
	// passed are the parked tables whose rows were passed over.
	passed map[tableName]bool
}

type heldRows struct {
	header replication.EventHeader
	event  rowsEvent
	codec  *rowCodec
}

// maxHeld bounds the rows of one XA transaction.
const maxHeld = 256 << 20

func (x *preparedXA) hold(r *reader, h *replication.EventHeader, e rowsEvent, c *rowCodec) error {
	if x.bytes += len(e.images); x.bytes > maxHeld {
		return &pipeline.StopError{Code: "xa-too-large", Where: fmt.Sprintf("%s at %s", c.full, r.at),
			Err: fmt.Errorf("the XA transaction %s has more than %d MiB of rows", x.id, maxHeld>>20),
			Fix: "make the transaction smaller; to go on behind it, " + anew}
	}
	e.images = bytes.Clone(e.images)
	x.rows = append(x.rows, heldRows{*h, e, c})
	return nil
}

// mariaXID reads the id of an XA transaction from what stands behind the flags of
// MariaDB's GTID event, and writes it as the statements have it: see xaStatement.
func mariaXID(b []byte, groupCommit bool) (string, error) {
	r := byteReader{b: b}
	if groupCommit {
		r.bytes(8)
	}
	format, gtrid, bqual := r.uint(4), int(r.uint(1)), int(r.uint(1))
	id := fmt.Sprintf("x%x,x%x,%d", r.bytes(gtrid), r.bytes(bqual), format)
	return id, r.err
}

// xaStatement handles XA START, END, PREPARE, COMMIT and ROLLBACK.
func (r *reader) xaStatement(h *replication.EventHeader, c *cursor) error {
	verb := strings.ToUpper(c.peek(1).text)
	var id strings.Builder
	for _, t := range c.tokens[min(2, len(c.tokens)):] {
		if t.is("ONE") || t.is("PHASE") {
			break
		}
		id.WriteString(strings.ToLower(t.text))
	}
	if !r.tx.hasGTID && len(r.tx.id) == 0 {
		r.begin(h, gtid{}, false)
	}
	switch verb {
	case "START", "BEGIN":
		r.tx.open = true
		r.tx.xa = &preparedXA{id: id.String()}
		return nil
	case "COMMIT":
		x := r.prepared[id.String()]
		if x == nil && r.shadow == nil {
			return &pipeline.StopError{Code: "xa-unknown", Where: r.at.String(),
				Err: errors.New("an XA transaction was committed whose rows were logged before this source began to read"),
				Fix: anew}
		}
		if err := r.release(h, x); err != nil {
			return err
		}
		delete(r.prepared, id.String())
		return r.commit(h)
	case "ROLLBACK":
		delete(r.prepared, id.String())
		return r.commit(h)
	}
	return nil
}

// prepare ends the part of an XA transaction that has its rows; for a transaction in
// one phase that is the commit as well.
func (r *reader) prepare(h *replication.EventHeader, b []byte) error {
	x := r.tx.xa
	if x == nil {
		return r.commit(h)
	}
	onePhase := len(b) > 0 && b[0] != 0
	if onePhase {
		if err := r.release(h, x); err != nil {
			return err
		}
		return r.commit(h)
	}
	if r.shadow == nil {
		// From here on no place is safe to resume from: see reader.boundary.
		r.prepared[x.id] = x
		r.beyond = true
	}
	return r.commit(h)
}

// pass notes that rows were passed over, where their table is parked.
func (x *preparedXA) pass(r *reader, m *tableMap) {
	n := r.reg.id(m.db, m.name)
	if _, parked := r.parked[n]; !parked {
		return
	}
	if x.passed == nil {
		x.passed = map[tableName]bool{}
	}
	x.passed[n] = true
}

// release emits held rows. A table that was parked when its rows were logged and is not
// any more is read anew: the snapshot that took it back may not have seen them.
func (r *reader) release(h *replication.EventHeader, x *preparedXA) error {
	if x == nil {
		return nil
	}
	for _, held := range x.rows {
		if _, parked := r.parked[held.codec.name]; parked {
			continue
		}
		held.header.Timestamp = h.Timestamp
		if err := r.contain(r.emitRows(&held.header, held.event, held.codec)); err != nil {
			return err
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(x.passed), compareNames) {
		if _, parked := r.parked[n]; !parked {
			r.log.Info("an XA transaction has rows that were passed over while their table was parked: it will be read anew", slog.String("table", n.String()))
			r.readAnew(h, n)
		}
	}
	return nil
}
