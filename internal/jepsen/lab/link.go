//go:build linux

package lab

import (
	"bytes"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Quality is that of one direction of a link. The zero value is a perfect one.
type Quality struct {
	Down    bool          // nothing arrives
	Loss    float64       // part of the packets that are lost, 0 to 1
	Double  float64       // part of the packets that arrive twice
	Reorder float64       // part of the delayed packets that overtake all others
	Delay   time.Duration // of each packet
	Jitter  time.Duration // at most so much is added to Delay, anew for each; order is kept
}

// waiting is how many packets a link holds back at most. What comes then is lost, as on any switch.
const waiting = 4096

// link is one direction between two machines.
type link struct {
	to            *os.File
	late          chan latePacket
	closed        chan struct{}
	arrived, lost atomic.Int64

	mu  sync.Mutex // guards all below
	q   Quality
	rnd *rand.Rand
}

type latePacket struct {
	due  time.Time
	data []byte
}

func newLink(to *os.File, rnd *rand.Rand) *link {
	return &link{to: to, rnd: rnd, late: make(chan latePacket, waiting), closed: make(chan struct{})}
}

func (l *link) set(q Quality) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.q = q
}

func (l *link) close() { close(l.closed) }

// send passes a packet on, or does to it what the link's quality says. The buffer is the caller's again afterwards.
func (l *link) send(packet []byte) {
	copies, delay := l.draw()
	if copies == 0 {
		l.lost.Add(1)
	}
	for range copies {
		if delay == 0 {
			l.write(packet)
			continue
		}
		select {
		case l.late <- latePacket{time.Now().Add(delay), bytes.Clone(packet)}:
		default:
			l.lost.Add(1)
		}
	}
}

// draw says how often a packet arrives, and how late.
func (l *link) draw() (copies int, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.q
	if q.Down || q.Loss > 0 && l.rnd.Float64() < q.Loss {
		return 0, 0
	}
	copies, delay = 1, q.Delay
	if q.Double > 0 && l.rnd.Float64() < q.Double {
		copies = 2
	}
	if q.Jitter > 0 {
		delay += time.Duration(l.rnd.Int64N(int64(q.Jitter)))
	}
	if q.Reorder > 0 && l.rnd.Float64() < q.Reorder {
		delay = 0
	}
	return copies, delay
}

func (l *link) write(packet []byte) {
	if _, err := l.to.Write(packet); err != nil { // the machine is gone
		l.lost.Add(1)
		return
	}
	l.arrived.Add(1)
}

// deliverLate writes what was held back, in its order, until the link is closed.
func (l *link) deliverLate() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.closed:
			return
		case p := <-l.late:
			timer.Reset(time.Until(p.due))
			select {
			case <-l.closed:
				return
			case <-timer.C:
				l.write(p.data)
			}
		}
	}
}
