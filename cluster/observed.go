package cluster

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// describeEvery is how often what an observer is to know is looked at where nothing tells of a change: users and ACLs.
const describeEvery = time.Second

// generationShift is how much of the number of an entry is the entry's, below the cluster's generation.
const generationShift = 44

// source serves observers from a node. It is safe for concurrent use.
type source struct {
	n *Node

	mu      sync.Mutex
	at      uint64 // the entry of the metadata that last is of; guarded by mu, as is all that follows
	last    *mirror.Description
	records map[metadata.StreamJournal]countedTo
}

// countedTo is how many records there are below a position: counting them takes a look at every partition.
type countedTo struct {
	position uint64
	records  int64
}

var _ mirror.Source = (*source)(nil)

// serveObserver answers an observer until its connection or ctx ends.
func (n *Node) serveObserver(ctx context.Context, conn net.Conn, r *bufio.Reader, name string) {
	select {
	case <-n.ready: // before, streams may be missing in the metadata
	case <-ctx.Done():
		return
	}
	if err := mirror.Serve(ctx, conn, r, &n.source); err != nil {
		n.logger.Warn("the connection of an observer ended; it comes back or goes to another node", "observer", name, "from", conn.RemoteAddr().String(), "error", err)
	}
}

// Describe implements mirror.Source.
func (s *source) Describe(ctx context.Context, floor uint64, known [32]byte) (mirror.Description, error) {
	for {
		changed := s.n.meta.Changed()
		d, err := s.describe()
		if err != nil {
			return mirror.Description{}, err
		}
		if d.Applied >= floor && d.Sum != known {
			return *d, nil
		}
		select {
		case <-changed:
		case <-time.After(describeEvery):
		case <-ctx.Done():
			return mirror.Description{}, ctx.Err()
		}
	}
}

func (s *source) describe() (*mirror.Description, error) {
	if err := s.n.meta.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.at == s.n.meta.Applied() {
		return s.last, nil
	}
	d, at, mirrored := s.n.meta.Describe()
	// A generation of the cluster that goes on without a majority of the one before may have fewer entries.
	applied := s.n.file.Get().Generation<<generationShift | at
	if s.n.Observes() {
		applied, d.Members = mirrored, nil
	}
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encoding the description of the streams: %w", err)
	}
	s.at, s.last = at, &mirror.Description{Applied: applied, Sum: sha256.Sum256(body), Body: body}
	return s.last, nil
}

// Ends implements mirror.Source.
func (s *source) Ends() (all []mirror.End) {
	now := time.Now()
	counted := map[metadata.StreamJournal]countedTo{}
	s.n.journals.eachOpen(func(_ string, h *journalHandle, g *raftgroup.Group) {
		e := s.end(h, g, counted)
		if o := s.n.observer; o != nil {
			o.addKnown(h.key(), &e, now)
		} else if node := metadata.NodeAt(g.LeaderAddress()); node < 0 {
			e.Lag = s.n.unheard(g)
		} else {
			e.Leads = node == s.n.id
		}
		all = append(all, e)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = counted
	return all
}

// unheard is for how long a replica that knows no leader has not heard of one.
func (n *Node) unheard(g *raftgroup.Group) time.Duration {
	at := g.LastContact()
	if at.Before(n.started) {
		at = n.started
	}
	return time.Since(at).Round(time.Second)
}

func (s *source) end(h *journalHandle, g *raftgroup.Group, counted map[metadata.StreamJournal]countedTo) mirror.End {
	at := g.Journal().Visible().Position
	s.mu.Lock()
	c, ok := s.records[h.key()]
	s.mu.Unlock()
	if !ok || c.position != at {
		c = countedTo{at, g.Journal().Records()}
	}
	counted[h.key()] = c
	return mirror.End{Key: mirrored(h.key()), Position: at, Records: c.records, KnownPosition: at, KnownRecords: c.records}
}

// Journal implements mirror.Source.
func (s *source) Journal(k mirror.Key) (*storage.Journal, bool) {
	h, err := s.n.journals.get(metadata.StreamJournal{Stream: metadata.StreamID(k.Stream), Journal: k.Journal})
	if err != nil {
		return nil, false
	}
	g := h.opened()
	if g == nil {
		return nil, false
	}
	return g.Journal(), true
}

func mirrored(k metadata.StreamJournal) mirror.Key {
	return mirror.Key{Stream: k.Stream, Journal: k.Journal}
}

func keyOf(k mirror.Key) metadata.StreamJournal {
	return metadata.StreamJournal{Stream: metadata.StreamID(k.Stream), Journal: k.Journal}
}
