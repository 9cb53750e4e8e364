package mysql

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/replication"
)

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
