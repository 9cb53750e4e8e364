package transport

import (
	"fmt"
	"time"
)

// mostPutOff is how often a verdict is put off because this process itself was late.
const mostPutOff = 4

// silence decides when a peer that says nothing is dead. Connections do not enter into it: one to a frozen process opens, and
// says nothing either, for as long as it may.
type silence struct {
	after  time.Duration // without a byte
	step   time.Duration // how often a living peer says something
	due    moment        // when to look; 0: it has not looked yet
	putOff int
}

// look says whether a peer that was last heard at some moment, 0 for never, is dead now, and in how long to look again. A process
// that is late itself, since it was stopped or got no core, may not have read yet what the peer said: it looks once more.
func (s *silence) look(now, heard moment) (dead bool, next time.Duration) {
	late := s.due != 0 && time.Duration(now-s.due) > s.step
	silent := time.Duration(now - heard)
	switch {
	case heard == 0 || silent < s.after:
		s.putOff = 0
		if next = s.after; heard != 0 {
			next -= silent
		}
	case late && s.putOff < mostPutOff:
		s.putOff++
		next = s.step
	default:
		dead, next = true, s.after
	}
	s.due = now + moment(next)
	return dead, next
}

// listen takes the peer for dead when it is silent, until it is removed.
func (p *peer) listen() {
	s := silence{after: p.t.o.Silence, step: p.t.o.every()}
	for {
		dead, next := s.look(p.t.now(), p.heard.Load())
		if dead {
			p.silent()
		}
		timer := time.NewTimer(next)
		select {
		case <-p.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// silent takes the peer for dead, unless something has come from it after all.
func (p *peer) silent() {
	p.mu.Lock()
	silent := p.t.passed(p.heard.Load())
	if silent < p.t.o.Silence || p.dead || p.ctx.Err() != nil {
		p.mu.Unlock()
		return
	}
	p.dead = true
	session := p.session
	p.mu.Unlock()
	if session != nil {
		session.end(fmt.Errorf("%w: silent for %v", ErrTimeout, silent.Round(time.Millisecond)))
	}
	p.t.failover(p.id)
}
