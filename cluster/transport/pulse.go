package transport

import (
	"sync"
	"time"
)

// pulser collects small items of one kind and sends those of a window as one frame.
type pulser struct {
	out    *outbox
	kind   frameKind
	window time.Duration

	mu    sync.Mutex // guards all below
	body  []byte
	usual int // how long body was last
	count int
	timer *time.Timer
}

func newPulser(out *outbox, kind frameKind, window time.Duration) *pulser {
	return &pulser{out: out, kind: kind, window: window}
}

// add appends an item by put.
func (p *pulser) add(put func([]byte) []byte) error {
	p.mu.Lock()
	if p.body == nil {
		p.body = make([]byte, 0, p.usual+p.usual/8)
	}
	p.body = put(p.body)
	p.count++
	full := p.count == maxPulses
	if p.count == 1 {
		p.goIn(p.window)
	}
	p.mu.Unlock()
	if full {
		return p.flush()
	}
	return nil
}

// goIn has what there is go after a while. The caller holds mu.
func (p *pulser) goIn(wait time.Duration) {
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, func() { _ = p.flush() }) // an error ends the calls
		return
	}
	p.timer.Reset(wait)
}

// flush sends what there is.
func (p *pulser) flush() error {
	p.mu.Lock()
	body := p.body
	p.body, p.usual, p.count = nil, len(body), 0
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	if len(body) == 0 {
		return nil
	}
	return p.out.push(&outgoing{header: header{kind: p.kind}, fixed: body})
}

// stop gives up what waits.
func (p *pulser) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}
