package mysql

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// progress is what Report shows. The reader writes it, anyone may read it.
type progress struct {
	records, transactions, statements, truncates atomic.Int64

	mu       sync.Mutex // guards the fields below
	phase    string
	at       place
	logged   uint32    // when the last transaction was logged, in seconds
	caughtUp time.Time // when the server last had nothing more to send
	table    string    // being read by the snapshot
	chunks   int
	rows     int64
	estimate map[string]uint64 // rows of each table, as the server guesses
	left     int               // tables that are still to be read, the current one included
	parked   []pipeline.Parked // replaced, never changed
}

func (p *progress) setParked(list []pipeline.Parked) {
	p.mu.Lock()
	p.parked = list
	p.mu.Unlock()
}

func (p *progress) setPhase(phase string) {
	p.mu.Lock()
	p.phase = phase
	p.mu.Unlock()
}

func (p *progress) emitted(records int, at place, logged uint32) {
	p.records.Add(int64(records))
	p.mu.Lock()
	p.at, p.logged = at, logged
	p.mu.Unlock()
}

func (p *progress) idle() {
	p.mu.Lock()
	p.caughtUp = time.Now()
	if p.phase == "catch-up" {
		p.phase = "live"
	}
	p.mu.Unlock()
}

func (p *progress) chunk(s *snapshot, c *chunk) {
	p.mu.Lock()
	if p.table != c.name {
		p.table, p.chunks = c.name, 0
	}
	p.phase = "snapshot"
	p.chunks++
	p.rows = s.rows + int64(len(c.rows))
	p.left = len(s.wait)
	p.mu.Unlock()
}

func (p *progress) snapshotOver() {
	p.mu.Lock()
	p.phase, p.table, p.left = "catch-up", "", 0
	p.mu.Unlock()
}

func (p *progress) report() pipeline.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := pipeline.Report{Phase: p.phase, Parked: p.parked, Counters: map[string]int64{
		"mysql_records": p.records.Load(), "mysql_transactions": p.transactions.Load(),
		"mysql_ddl": p.statements.Load(), "mysql_tables_emptied": p.truncates.Load(),
		"mysql_tables_parked": int64(len(p.parked)),
	}}
	if p.at.File != "" {
		r.Detail = "at " + p.at.String()
	}
	if p.table != "" {
		r.Detail = fmt.Sprintf("%s: chunk %d, %d rows", p.table, p.chunks, p.rows)
		if e := p.estimate[p.table]; e > 0 {
			r.Detail += fmt.Sprintf(" of about %d", max(e, uint64(p.rows)))
		}
		if p.left > 1 {
			r.Detail += fmt.Sprintf("; %d tables to go", p.left-1)
		}
	}
	if p.logged != 0 && time.Since(p.caughtUp) > time.Second {
		r.Lag = max(0, time.Since(time.Unix(int64(p.logged), 0)))
	}
	return r
}
