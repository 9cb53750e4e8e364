package observer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/raftgroup"
)

// Status is what an observer knows of its copies.
type Status struct {
	Cluster string `json:"cluster_id"`
	// CaughtUp says that all that there was when the observer was started is here. It stays.
	CaughtUp  bool             `json:"caught_up"`
	Upstreams []UpstreamStatus `json:"upstreams"`
	Streams   []StreamStatus   `json:"streams"`
}

// UpstreamStatus is who is pulled from.
type UpstreamStatus struct {
	Address   string `json:"address"`
	Given     bool   `json:"given"` // else it is another node of the cluster, asked where those given cannot help
	Connected bool   `json:"connected"`
	Journals  int    `json:"journals"` // pulled from it now
	Error     string `json:"error,omitempty"`
}

// StreamStatus is the copy of a stream, its journals taken together.
type StreamStatus struct {
	Stream string            `json:"stream"`
	ID     metadata.StreamID `json:"id"`
	// LagRecords and LagBytes are how much the upstreams know of that is not here.
	LagRecords int64 `json:"lag_records"`
	LagBytes   int64 `json:"lag_bytes"`
	// Lag is for how long the copy has not had all that there is: the time that the last records took, or since it was last
	// known to be complete. It includes how far the upstream itself is behind.
	Lag time.Duration `json:"lag_ns"`
	// Stopped says why journals are copied no further, if some are.
	Stopped []string `json:"stopped,omitempty"`
}

// Ready says why a client that wants what is new should not read here: nobody is connected, the copies have not yet got all
// that there was when the observer was started, or one goes no further.
func (o *Observer) Ready() error {
	s := o.Status()
	var errs []error
	if !slices.ContainsFunc(s.Upstreams, func(u UpstreamStatus) bool { return u.Connected }) {
		errs = append(errs, errors.New("no upstream is connected"))
	}
	if !s.CaughtUp {
		errs = append(errs, errors.New("not everything that there was at the start is copied yet"))
	}
	for _, m := range s.Streams {
		for _, why := range m.Stopped {
			errs = append(errs, fmt.Errorf("stream %s is copied no further: %s", m.Stream, why))
		}
	}
	return errors.Join(errs...)
}

// Status says who is pulled from, and how far.
func (o *Observer) Status() Status {
	now := time.Now()
	s := Status{Cluster: o.o.Meta.ClusterID()}
	from := map[*link]int{}
	streams := map[metadata.StreamID]*StreamStatus{}
	for _, st := range o.o.Meta.Streams() {
		streams[st.ID] = &StreamStatus{Stream: st.Name, ID: st.ID}
	}
	all := true
	for _, p := range o.pullerList() {
		m := streams[p.key.Stream]
		if m == nil {
			continue // it is just being deleted
		}
		g := o.o.Copies.Opened(p.key)
		p.mu.Lock()
		p.addTo(m, g, now)
		all = all && p.behind.once
		from[p.from]++
		p.mu.Unlock()
	}
	s.CaughtUp = o.noteCaughtUp(all)
	for _, m := range streams {
		s.Streams = append(s.Streams, *m)
	}
	slices.SortFunc(s.Streams, func(a, b StreamStatus) int { return strings.Compare(a.Stream, b.Stream) })
	for _, l := range o.linkList() {
		s.Upstreams = append(s.Upstreams, l.status(from[l]))
	}
	return s
}

// noteCaughtUp keeps that the copies were complete once; all says that each of them was.
func (o *Observer) noteCaughtUp(all bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.caughtUp = o.caughtUp || all && o.sum != [32]byte{}
	return o.caughtUp
}

// addTo adds a journal to the status of its stream. The caller holds mu.
func (p *puller) addTo(m *StreamStatus, g *raftgroup.Group, now time.Time) {
	if g != nil {
		m.LagBytes += max(0, int64(p.behind.known)-int64(p.has.Position))
		m.LagRecords += max(0, p.behind.records-g.Journal().Records())
	}
	m.Lag = max(m.Lag, p.behind.lag(now))
	if p.stopped != nil {
		m.Stopped = append(m.Stopped, fmt.Sprintf("journal %d: %v", p.key.Journal, p.stopped))
	}
}

func (l *link) status(journals int) UpstreamStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := UpstreamStatus{Address: l.address, Given: l.given, Connected: l.client != nil && !l.round.IsZero(), Journals: journals}
	if l.err != nil {
		s.Error = l.err.Error()
	}
	return s
}

// addKnown tells further observers what this one knows of a journal beside what it has.
func (o *Observer) addKnown(k metadata.StreamJournal, e *mirror.End, now time.Time) {
	o.mu.Lock()
	p := o.pullers[k]
	o.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.KnownPosition, e.KnownRecords = max(e.KnownPosition, p.behind.known), max(e.KnownRecords, p.behind.records)
	e.Lag = p.behind.lag(now).Truncate(time.Millisecond)
}
