package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/raftgroup"
)

// ObserverStatus is what an observer knows of its copies.
type ObserverStatus struct {
	Cluster string `json:"cluster_id"`
	// CaughtUp says that all that there was when the observer was started is here. It stays.
	CaughtUp  bool             `json:"caught_up"`
	Upstreams []UpstreamStatus `json:"upstreams"`
	Streams   []MirrorStatus   `json:"streams"`
}

// UpstreamStatus is who is pulled from.
type UpstreamStatus struct {
	Address   string `json:"address"`
	Given     bool   `json:"given"` // else it is another node of the cluster, asked where those given cannot help
	Connected bool   `json:"connected"`
	Journals  int    `json:"journals"` // pulled from it now
	Error     string `json:"error,omitempty"`
}

// MirrorStatus is the copy of a stream, its journals taken together.
type MirrorStatus struct {
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

// Observer returns the state of an observer; ok is false if the node is none.
func (n *Node) Observer() (s ObserverStatus, ok bool) {
	if n.observer == nil {
		return s, false
	}
	return n.observer.status(time.Now()), true
}

// ObserverReady says why an observer should not be read from by a client that wants what is new: it is not connected, it has not yet
// got all that there was when it started, or a copy goes no further. It is nil for other nodes.
func (n *Node) ObserverReady() error {
	s, ok := n.Observer()
	if !ok {
		return nil
	}
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

// observerStatus is what Status says of an observer.
func (n *Node) observerStatus(ctx context.Context, o ObserverStatus) ClusterStatus {
	s := ClusterStatus{ClusterID: o.Cluster, Node: n.id, Controller: -1, Observer: &o}
	a := nodeAnswer{}
	a.NodeReport, a.err = n.reportOf(ctx, n.id)
	m := n.memberStatus(n.Members()[0], &a, false)
	if err := n.ObserverReady(); err != nil {
		m.Problem = strings.TrimPrefix(m.Problem+"; "+err.Error(), "; ")
	}
	m.Leads = 0 // its copies are nobody's group
	s.Members = []MemberStatus{m}
	s.count()
	return s
}

func (o *observer) status(now time.Time) ObserverStatus {
	s := ObserverStatus{Cluster: o.n.ClusterID()}
	from := map[*link]int{}
	streams := map[metadata.StreamID]*MirrorStatus{}
	for _, st := range o.n.meta.Streams() {
		streams[st.ID] = &MirrorStatus{Stream: st.Name, ID: st.ID}
	}
	all := true
	for _, p := range o.pullerList() {
		m := streams[p.key.Stream]
		if m == nil {
			continue // it is just being deleted
		}
		g := o.groupOf(p.key)
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
	slices.SortFunc(s.Streams, func(a, b MirrorStatus) int { return strings.Compare(a.Stream, b.Stream) })
	for _, l := range o.linkList() {
		s.Upstreams = append(s.Upstreams, l.status(from[l]))
	}
	return s
}

// groupOf returns the copy, if it is open.
func (o *observer) groupOf(k metadata.StreamJournal) *raftgroup.Group {
	h, err := o.n.journals.get(k)
	if err != nil {
		return nil
	}
	return h.opened()
}

// noteCaughtUp keeps that the copies were complete once; all says that each of them was.
func (o *observer) noteCaughtUp(all bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.caughtUp = o.caughtUp || all && o.sum != [32]byte{}
	return o.caughtUp
}

// addTo adds a journal to the status of its stream. The caller holds mu.
func (p *puller) addTo(m *MirrorStatus, g *raftgroup.Group, now time.Time) {
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
func (o *observer) addKnown(k metadata.StreamJournal, e *mirror.End, now time.Time) {
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
