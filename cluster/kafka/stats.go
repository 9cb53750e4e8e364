package kafka

import "sync/atomic"

// Stats counts what a server has done since it was made.
type Stats struct {
	Connections    int    // open now
	Requests       uint64 // answered or being answered
	BytesIn        uint64 // of requests
	BytesOut       uint64 // of answers
	RecordsIn      uint64 // in batches that were stored; duplicates count again
	BatchesTaken   uint64 // stored
	BatchesRefused uint64 // refused, or not stored for another reason
	LoginsRefused  uint64 // by SASL
}

// counters is what Stats is read from.
type counters struct {
	requests, bytesIn, bytesOut        atomic.Uint64
	recordsIn, batchesTaken, batchLeft atomic.Uint64
	loginsRefused                      atomic.Uint64
}

// Stats returns the counts as they are now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	connections := len(s.conns)
	s.mu.Unlock()
	return Stats{
		Connections:    connections,
		Requests:       s.counts.requests.Load(),
		BytesIn:        s.counts.bytesIn.Load(),
		BytesOut:       s.counts.bytesOut.Load(),
		RecordsIn:      s.counts.recordsIn.Load(),
		BatchesTaken:   s.counts.batchesTaken.Load(),
		BatchesRefused: s.counts.batchLeft.Load(),
		LoginsRefused:  s.counts.loginsRefused.Load(),
	}
}

// batch counts one batch and its records.
func (c *counters) batch(records int32, err error) {
	if err != nil {
		c.batchLeft.Add(1)
		return
	}
	c.batchesTaken.Add(1)
	c.recordsIn.Add(uint64(max(records, 0)))
}
