package pipeline

import (
	"errors"
	"sync"
	"time"
)

// State is what a source or sink is doing, in one word.
type State string

// The states.
const (
	StateStarting State = "starting" // reading its checkpoint, connecting
	StateRunning  State = "running"  // data moves, or would if there were any
	StateRetrying State = "retrying" // an error that waiting may mend
	StateStopped  State = "stopped"  // an error that someone must act on
	StateDone     State = "done"     // a run with an end has reached it
	StateEnded    State = "ended"    // told to stop
)

// Condition is the state of a source or sink, and why.
type Condition struct {
	State State     `json:"state"`
	Since time.Time `json:"since"`
	// Error is the last error, also after things went well again; ErrorAt is its time.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"error_at,omitzero"`
	// Code is the code of a StopError.
	Code string `json:"code,omitempty"`
}

// condition is a Condition that may be read at any time.
type condition struct {
	mu sync.Mutex
	c  Condition
}

// set changes the state; err is nil where the state is no trouble.
func (c *condition) set(s State, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c.State != s {
		c.c.State, c.c.Since = s, time.Now().UTC()
	}
	if err == nil {
		return
	}
	c.c.Error, c.c.ErrorAt, c.c.Code = err.Error(), time.Now().UTC(), ""
	var stop *StopError
	if errors.As(err, &stop) {
		c.c.Code = stop.Code
	}
}

// is reports whether the state is s.
func (c *condition) is(s State) bool { return c.get().State == s }

func (c *condition) get() Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c
}
