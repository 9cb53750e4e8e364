package cluster

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/moves"
	"github.com/daybook-data/daybook/cluster/raftgroup"
)

// journals are the journals of all streams, as this node knows and has them. It is safe for concurrent use.
type journals struct {
	meta *metadata.State
	self int32
	// several says that other nodes have copies too, which are led by one of them.
	several bool
	// observes says that the copies here follow those of a cluster.
	observes bool
	up       func(node int32) bool
	leads    *leadTable // what other nodes lead
	// open opens a journal at its first use. It is not called where there are several nodes: [Node.keepReplicas] opens what
	// is to be here.
	open func(*journalHandle) (*raftgroup.Group, error)

	mu      sync.RWMutex // guards all below
	closed  bool
	streams map[metadata.StreamID]*liveStream
}

// live returns the stream with its journals, none of which need be open.
func (j *journals) live(s *metadata.Stream) (*liveStream, error) {
	j.mu.RLock()
	l, ok := j.streams[s.ID]
	closed := j.closed
	j.mu.RUnlock()
	if ok && l.stream == s {
		return l, nil
	}
	if closed {
		return nil, ErrClosed
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, ErrClosed
	}
	// s may be outdated by now; the metadata has what is valid.
	current, ok := j.meta.StreamByID(s.ID)
	if !ok {
		return nil, metadata.ErrUnknownStream
	}
	var old []*journalHandle
	if l, ok := j.streams[s.ID]; ok {
		old = l.journals
	}
	next := newLiveStream(j, current, old)
	if j.streams == nil {
		j.streams = map[metadata.StreamID]*liveStream{}
	}
	j.streams[s.ID] = next
	return next, nil
}

// get returns a journal, which need not be open.
func (j *journals) get(k metadata.StreamJournal) (*journalHandle, error) {
	s, ok := j.meta.StreamByID(k.Stream)
	if !ok {
		return nil, metadata.ErrUnknownStream
	}
	l, err := j.live(s)
	if err != nil {
		return nil, err
	}
	if k.Journal < 0 || int(k.Journal) >= len(l.journals) {
		return nil, metadata.ErrUnknownPartition
	}
	return l.journals[k.Journal], nil
}

// partition returns a partition of a stream.
func (j *journals) partition(s *metadata.Stream, partition int32) (*Partition, error) {
	if partition < 0 || partition >= s.Partitions {
		return nil, metadata.ErrUnknownPartition
	}
	l, err := j.live(s)
	if err != nil {
		return nil, err
	}
	return &l.partitions[partition], nil
}

// lead says who leads a journal.
func (j *journals) lead(k metadata.StreamJournal) (moves.Lead, error) {
	s, ok := j.meta.StreamByID(k.Stream)
	if !ok {
		return moves.Lead{}, metadata.ErrUnknownStream
	}
	p, err := j.partition(s, k.Journal) // the first partition of a journal has its number
	if err != nil {
		return moves.Lead{}, err
	}
	leader, _ := p.Leader()
	return moves.Lead{Node: leader, InSync: p.InSync()}, nil
}

// drop takes a deleted stream out; the caller closes it.
func (j *journals) drop(id metadata.StreamID) *liveStream {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.streams[id]
	delete(j.streams, id)
	return l
}

// close closes all journals, and lets none be opened any more.
func (j *journals) close() error {
	j.mu.Lock()
	j.closed = true
	streams := j.streams
	j.streams = nil
	j.mu.Unlock()
	var errs []error
	for _, l := range streams {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

// eachOpen calls f with each journal that is open. One that is being opened or
// closed is left out: nobody here waits for a disk that may not answer.
func (j *journals) eachOpen(f func(stream string, h *journalHandle, g *raftgroup.Group)) {
	j.each(func(stream string, h *journalHandle) {
		if !h.mu.TryRLock() {
			return
		}
		g := h.group
		h.mu.RUnlock()
		if g != nil {
			f(stream, h, g)
		}
	})
}

// eachUnopened calls f with each journal whose copy here does not open, and why.
func (j *journals) eachUnopened(f func(stream string, h *journalHandle, err error)) {
	j.each(func(stream string, h *journalHandle) {
		if err := h.unopened.Load(); err != nil {
			f(stream, h, *err)
		}
	})
}

// each calls f with each journal, by the names of their streams.
func (j *journals) each(f func(stream string, h *journalHandle)) {
	j.mu.RLock()
	var all []*liveStream
	for _, l := range j.streams {
		all = append(all, l)
	}
	j.mu.RUnlock()
	slices.SortFunc(all, func(a, b *liveStream) int { return strings.Compare(a.stream.Name, b.stream.Name) })
	for _, l := range all {
		for _, h := range l.journals {
			f(l.stream.Name, h)
		}
	}
}

// led is what this node leads, about so many journals, in the order of streams. Who watches partitions is told of new
// leaders on the way.
func (j *journals) led(about int) (all []lead) {
	all = make([]lead, 0, about)
	for _, s := range j.meta.Streams() {
		l, err := j.live(s)
		if err != nil {
			continue
		}
		for _, h := range l.journals {
			h.noteLeader()
			if g := h.opened(); g != nil && g.Serves() {
				all = append(all, lead{StreamJournal: h.key(), Term: g.Term(), InSync: j.inSync(l, h, g)})
			}
		}
	}
	return all
}

// inSync are the replicas that count in the group and have what this leader has, or nearly so.
func (j *journals) inSync(l *liveStream, h *journalHandle, g *raftgroup.Group) (ids []int32) {
	replicas, servers := l.stream.ReplicasOf(h.number), g.Servers()
	ids = make([]int32, 0, len(replicas))
	for _, r := range replicas {
		if r.Node == j.self || j.up(r.Node) && raftgroup.Votes(servers, r.ID()) && g.Near(r.ID()) {
			ids = append(ids, r.Node)
		}
	}
	return ids
}
