package history

import (
	"sync"
	"time"
)

// A Recorder takes operations down as they happen. Safe for concurrent use.
type Recorder struct {
	begin time.Time

	mu     sync.Mutex // guards all below
	ops    []*Op
	values int64
}

// NewRecorder begins a history.
func NewRecorder() *Recorder { return &Recorder{begin: time.Now()} }

// Value returns a value that no record has yet.
func (r *Recorder) Value() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values++
	return r.values
}

// Now is the history's time.
func (r *Recorder) Now() int64 { return int64(time.Since(r.begin)) }

// Begin takes down that an operation begins: its Index, Invoke and, until Done says more, an unknown outcome. The
// recorder keeps a copy.
func (r *Recorder) Begin(op Op) Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Index, op.Invoke, op.Complete, op.Outcome = len(r.ops), r.Now(), Never, Unknown
	kept := op
	r.ops = append(r.ops, &kept)
	return op
}

// Done takes down how an operation that Begin returned has ended. One that is still unknown completes never. The op is
// the recorder's afterwards.
func (r *Recorder) Done(op Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Complete = Never
	if op.Outcome != Unknown {
		op.Complete = r.Now()
	}
	r.ops[op.Index] = &op
}

// Ops returns the history so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	ops := make([]Op, len(r.ops))
	for i, op := range r.ops {
		ops[i] = *op
	}
	return ops
}
