package metadata

import (
	"fmt"
)

// WireResult is a result on its way to another node, or in a snapshot. One field is set, or none.
type WireResult struct {
	Error       *WireError   `json:"error,omitempty"`
	Text        *string      `json:"text,omitempty"`
	Number      *int64       `json:"number,omitempty"`
	Stream      *Stream      `json:"stream,omitempty"`
	Transaction *Transaction `json:"transaction,omitempty"`
	Member      *Member      `json:"member,omitempty"`
}

// Wire is the result as it is sent and kept in snapshots.
func (r Result) Wire() (w WireResult) {
	if r.Err != nil {
		return WireResult{Error: Refusals().Encode(r.Err)}
	}
	switch v := r.Value.(type) {
	case nil:
	case string:
		w.Text = &v
	case int64:
		w.Number = &v
	case *Stream:
		w.Stream = v
	case *Transaction:
		w.Transaction = v
	case Member:
		w.Member = &v
	default:
		panic(fmt.Sprintf("metadata: metadata answered with a %T", r.Value))
	}
	return w
}

// Result is what Wire was made of.
func (w WireResult) Result() Result {
	switch {
	case w.Error != nil:
		return Result{Err: Refusals().Decode(w.Error)}
	case w.Text != nil:
		return Result{Value: *w.Text}
	case w.Number != nil:
		return Result{Value: *w.Number}
	case w.Stream != nil:
		return Result{Value: w.Stream}
	case w.Transaction != nil:
		return Result{Value: w.Transaction}
	case w.Member != nil:
		return Result{Value: *w.Member}
	}
	return Result{}
}
