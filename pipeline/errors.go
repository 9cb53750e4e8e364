package pipeline

import (
	"fmt"
	"strings"
)

// StopError is an error after which going on would lose or falsify data: the
// source, table or sink that returned it stops, and someone must act.
type StopError struct {
	// Code is stable and short, for alerts and for looking it up ("binlog-purged").
	Code string
	// Where names the place: a file and offset, a table, an index, a key.
	Where string
	// Fix is the one thing to do next.
	Fix string
	Err error
}

// Error says what, where and what to do.
func (e *StopError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]", e.Code)
	if e.Where != "" {
		fmt.Fprintf(&b, " %s:", e.Where)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, " %v", e.Err)
	}
	if e.Fix != "" {
		fmt.Fprintf(&b, " (fix: %s)", e.Fix)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *StopError) Unwrap() error { return e.Err }

// RejectedError names deliveries that the destination refuses for good.
type RejectedError struct {
	Rejected []Rejected
}

// Rejected is one refused delivery and the destination's reason.
type Rejected struct {
	Delivery Delivery
	Reason   string
}

// Error counts the refused deliveries and gives the first reason.
func (e *RejectedError) Error() string {
	if len(e.Rejected) == 0 {
		return "no record rejected"
	}
	r := e.Rejected[0]
	return fmt.Sprintf("%d records rejected, the first (%s/%d@%d): %s",
		len(e.Rejected), r.Delivery.Stream, r.Delivery.Partition, r.Delivery.Offset, r.Reason)
}
