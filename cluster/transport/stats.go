package transport

import (
	"sync/atomic"
	"time"
)

// counters are the transport's own figures.
type counters struct {
	bytesSent, bytesReceived   atomic.Uint64
	framesSent, framesReceived atomic.Uint64
	pulses, folded, told       atomic.Uint64
	split, busy, timeouts      atomic.Uint64
	refused, broken, injected  atomic.Uint64
}

// Stats are figures since the start, but for Peers and HeldBytes, which are of now.
type Stats struct {
	BytesSent, BytesReceived   uint64
	FramesSent, FramesReceived uint64
	// Heartbeats were sent for raft; Folded are those of them that stand for an AppendEntries without news.
	Heartbeats, Folded uint64
	// Told counts the requests that only told a follower what is committed.
	Told uint64
	// Split counts AppendEntries that went as several requests.
	Split uint64
	// Busy counts received requests for which there was no room, Timeouts requests that were not answered in time.
	Busy, Timeouts uint64
	// Refused counts connections that were turned away, Broken those that ended because the peer broke the protocol.
	Refused, Broken uint64
	// Stood counts the times a local member was told to stand for election because its leader's node died.
	Stood uint64
	// HeldBytes is what was received and is not yet answered.
	HeldBytes int64
	Peers     map[string]PeerStats
}

// PeerStats describe the way to one peer.
type PeerStats struct {
	// Address is where it was reached, or is looked for.
	Address string
	Up      bool
	// Dead says that the peer's process or machine was found to be gone.
	Dead bool
	// Heard is when the last bytes came from it, on whatever connection; zero if none did.
	Heard time.Time
	// Sessions is how many sessions to it there were: all but the first are reconnects.
	Sessions uint64
	// Calls is how many requests wait for an answer.
	Calls int
	// Err is why the last session or the last try to make one ended.
	Err error
	// Doubled is for how long it has answered every try by saying that another process is connected as this node.
	Doubled time.Duration
	// Twin is where another process is that calls itself the same and is refused for longer than one that took its place
	// would be; empty if there is none.
	Twin string
	// Serves says that the peer has a connection to this node: it reaches it.
	Serves bool
}

// Stats returns the transport's figures.
func (t *Transport) Stats() Stats {
	c := &t.stats
	s := Stats{
		BytesSent: c.bytesSent.Load(), BytesReceived: c.bytesReceived.Load(),
		FramesSent: c.framesSent.Load(), FramesReceived: c.framesReceived.Load(),
		Heartbeats: c.pulses.Load(), Folded: c.folded.Load(), Told: c.told.Load(), Split: c.split.Load(),
		Busy: c.busy.Load(), Timeouts: c.timeouts.Load(),
		Refused: c.refused.Load(), Broken: c.broken.Load(), Stood: c.injected.Load(),
		HeldBytes: t.budget.used.Load(), Peers: map[string]PeerStats{},
	}
	for _, p := range t.peerList() {
		of := p.stats()
		of.Serves = t.serves(p.id)
		s.Peers[p.id] = of
	}
	return s
}
