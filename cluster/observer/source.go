package observer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// describeEvery is how often what an observer is to know is looked at where nothing tells of a change: users and ACLs.
const describeEvery = time.Second

// generationShift is how much of the number of an entry is the entry's, below the cluster's generation.
const generationShift = 44

// SourceOptions are what a source needs of its node.
type SourceOptions struct {
	Meta   *metadata.State
	Copies Copies
	// File is the node's, which says of what generation its cluster is.
	File *datadir.File
	// Self is the node's id, by which it knows what it leads itself.
	Self   int32
	Logger *slog.Logger
	// Ready is closed when all streams are known that there are: nobody is served before.
	Ready <-chan struct{}
}

// Source serves observers from a node, which may be an observer itself. It is safe for concurrent use.
type Source struct {
	o        SourceOptions
	started  time.Time
	observer *Observer // nil: the node is none

	mu      sync.Mutex
	at      uint64 // the entry of the metadata that last is of; guarded by mu, as is all that follows
	last    *mirror.Description
	records map[metadata.StreamJournal]countedTo
}

// NewSource returns the source of a node that has just started.
func NewSource(o SourceOptions) *Source { return &Source{o: o, started: time.Now()} }

// countedTo is how many records there are below a position: counting them takes a look at every partition.
type countedTo struct {
	position uint64
	records  int64
}

var _ mirror.Source = (*Source)(nil)

// Serve answers an observer until its connection or ctx ends.
func (s *Source) Serve(ctx context.Context, conn net.Conn, r *bufio.Reader, name string) {
	select {
	case <-s.o.Ready: // before, streams may be missing in the metadata
	case <-ctx.Done():
		return
	}
	if err := mirror.Serve(ctx, conn, r, s); err != nil {
		s.o.Logger.Warn("the connection of an observer ended; it comes back or goes to another node", "observer", name, "from", conn.RemoteAddr().String(), "error", err)
	}
}

// Describe implements mirror.Source.
func (s *Source) Describe(ctx context.Context, floor uint64, known [32]byte) (mirror.Description, error) {
	for {
		changed := s.o.Meta.Changed()
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

func (s *Source) describe() (*mirror.Description, error) {
	if err := s.o.Meta.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.at == s.o.Meta.Applied() {
		return s.last, nil
	}
	d, at, mirrored := s.o.Meta.Describe()
	// A generation of the cluster that goes on without a majority of the one before may have fewer entries.
	applied := s.o.File.Get().Generation<<generationShift | at
	if s.observer != nil {
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
func (s *Source) Ends() (all []mirror.End) {
	now := time.Now()
	counted := map[metadata.StreamJournal]countedTo{}
	s.o.Copies.EachOpen(func(k metadata.StreamJournal, g *raftgroup.Group) {
		e := s.end(k, g, counted)
		if s.observer != nil {
			s.observer.addKnown(k, &e, now)
		} else if node := metadata.NodeAt(g.LeaderAddress()); node < 0 {
			e.Lag = s.unheard(g)
		} else {
			e.Leads = node == s.o.Self
		}
		all = append(all, e)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = counted
	return all
}

// unheard is for how long a replica that knows no leader has not heard of one.
func (s *Source) unheard(g *raftgroup.Group) time.Duration {
	at := g.LastContact()
	if at.Before(s.started) {
		at = s.started
	}
	return time.Since(at).Round(time.Second)
}

func (s *Source) end(k metadata.StreamJournal, g *raftgroup.Group, counted map[metadata.StreamJournal]countedTo) mirror.End {
	at := g.Journal().Visible().Position
	s.mu.Lock()
	c, ok := s.records[k]
	s.mu.Unlock()
	if !ok || c.position != at {
		c = countedTo{at, g.Journal().Records()}
	}
	counted[k] = c
	return mirror.End{Key: mirrored(k), Position: at, Records: c.records, KnownPosition: at, KnownRecords: c.records}
}

// Journal implements mirror.Source.
func (s *Source) Journal(k mirror.Key) (*storage.Journal, bool) {
	g := s.o.Copies.Opened(keyOf(k))
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
