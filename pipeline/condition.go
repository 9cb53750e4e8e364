package pipeline

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// State is what a source or sink is doing, in one word.
type State string

// The states.
const (
	StateStarting State = "starting" // reading its checkpoint, connecting
	StateRunning  State = "running"  // data moves, or would if there were any
	StateStandby  State = "standby"  // another worker does it; this one takes over when that ends
	StateDegraded State = "degraded" // data moves, but for parts that someone must act on (Report.Parked)
	StateRetrying State = "retrying" // an error that waiting may mend
	StateStalled  State = "stalled"  // no error, but nothing has moved for long although something waits
	StateStopped  State = "stopped"  // an error that someone must act on
	StateDone     State = "done"     // a run with an end has reached it
	StateEnded    State = "ended"    // told to stop
)

// Condition is the state of a source or sink, and why.
type Condition struct {
	State State     `json:"state"`
	Since time.Time `json:"since"`
	// Waits is what it waits for at present, where that is no error.
	Waits string `json:"waits,omitempty"`
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
	c.enter(s)
	if err == nil {
		return
	}
	c.c.Error, c.c.ErrorAt, c.c.Code = err.Error(), time.Now().UTC(), ""
	var stop *StopError
	if errors.As(err, &stop) {
		c.c.Code = stop.Code
	}
}

// wait changes the state to one in which something is waited for that is no trouble.
func (c *condition) wait(s State, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter(s)
	c.c.Waits = what
}

// standBy enters StateStandby, and logs that once: who runs beside another, or with Once, sees why nothing happens.
func (c *condition) standBy(log *slog.Logger, what string) {
	if !c.is(StateStandby) {
		log.Info("standing by", "waits_for", what)
	}
	c.wait(StateStandby, what)
}

// enter changes the state. mu is held.
func (c *condition) enter(s State) {
	c.c.Waits = ""
	if c.c.State != s {
		c.c.State, c.c.Since = s, time.Now().UTC()
	}
}

// is reports whether the state is s.
func (c *condition) is(s State) bool { return c.get().State == s }

func (c *condition) get() Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c
}
