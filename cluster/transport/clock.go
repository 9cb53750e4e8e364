package transport

import "time"

// moment is a point in time that goroutines share: nanoseconds since the transport was opened, and 0 for never. It is not
// the time of day, which is set while the machine runs: a node whose clock jumps would take all others for dead, or one
// that has died for alive, for as long as the jump is.
type moment = int64

// now is the present moment.
func (t *Transport) now() moment { return max(1, moment(time.Since(t.opened))) }

// passed is the time since a moment.
func (t *Transport) passed(since moment) time.Duration { return time.Duration(t.now() - since) }

// at returns a moment's time.
func (t *Transport) at(m moment) time.Time { return t.opened.Add(time.Duration(m)) }
