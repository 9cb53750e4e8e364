package http

import (
	nethttp "net/http"
	"sync/atomic"
)

// counters is what the source tells of itself. Safe for concurrent use.
type counters struct {
	requests, accepted, duplicates, arrivals, shifted atomic.Int64
	malformed, tooLarge, busy, unavailable, other     atomic.Int64
}

// refused counts an answer other than success.
func (c *counters) refused(status int) {
	switch status {
	case nethttp.StatusBadRequest:
		c.malformed.Add(1)
	case nethttp.StatusRequestEntityTooLarge:
		c.tooLarge.Add(1)
	case nethttp.StatusTooManyRequests:
		c.busy.Add(1)
	case nethttp.StatusServiceUnavailable:
		c.unavailable.Add(1)
	default:
		c.other.Add(1)
	}
}

func (c *counters) report() map[string]int64 {
	return map[string]int64{
		"requests":            c.requests.Load(),
		"accepted":            c.accepted.Load(),
		"duplicates":          c.duplicates.Load(),
		"time_from_arrival":   c.arrivals.Load(),
		"time_in_gap_or_fold": c.shifted.Load(),
		"refused_malformed":   c.malformed.Load(),
		"refused_too_large":   c.tooLarge.Load(),
		"refused_busy":        c.busy.Load(),
		"refused_unavailable": c.unavailable.Load(),
		"refused_other":       c.other.Load(),
	}
}
