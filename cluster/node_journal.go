package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/storage"
)

// liveStream is a stream with its journals. It is immutable: when the stream
// changes another one takes its place, with the same journals.
type liveStream struct {
	stream   *metadata.Stream
	policy   metadata.Policy
	journals []*journalHandle
	// partitions are what is handed out, so that finding one costs nothing.
	partitions []Partition
}

// live returns the stream with its journals, none of which need be open.
func (n *Node) live(s *metadata.Stream) (*liveStream, error) {
	n.mu.RLock()
	l, ok := n.streams[s.ID]
	closed := n.closed
	n.mu.RUnlock()
	if ok && l.stream == s {
		return l, nil
	}
	if closed {
		return nil, ErrClosed
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	// s may be outdated by now; the metadata has what is valid.
	current, ok := n.meta.StreamByID(s.ID)
	if !ok {
		return nil, metadata.ErrUnknownStream
	}
	next := &liveStream{stream: current, policy: current.Policy()}
	if l, ok := n.streams[s.ID]; ok {
		next.journals = l.journals
	}
	for i := int32(len(next.journals)); i < current.Journals; i++ {
		next.journals = append(next.journals, &journalHandle{node: n, stream: s.ID, number: i, durable: next.policy.Durable})
	}
	next.partitions = make([]Partition, current.Partitions)
	for i := range next.partitions {
		number := int32(i)
		next.partitions[i] = Partition{stream: current, policy: next.policy, handle: next.journals[current.JournalOf(number)], number: number}
	}
	n.streams[s.ID] = next
	return next, nil
}

// drop takes a deleted stream out; the caller closes it.
func (n *Node) drop(id metadata.StreamID) *liveStream {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.streams[id]
	delete(n.streams, id)
	return l
}

func (l *liveStream) close() error {
	var errs []error
	for _, h := range l.journals {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// journalHandle is a journal that is opened by its first use. A failure to open
// is returned to everyone who tries; each try opens anew, as the cause (no
// descriptors, no space) may be gone.
type journalHandle struct {
	node    *Node
	stream  metadata.StreamID
	number  int32
	durable bool

	mu     sync.RWMutex
	group  *raftgroup.Group
	closed bool

	tidied   atomic.Bool           // nothing is kept of damaged copies
	unopened atomic.Pointer[error] // why the copy here does not open

	shownMu  sync.Mutex // guards all below
	shown    uint64     // the highest term that was told as the leader's epoch
	seenNode int32      // who led when watchers were told last
	seenTerm uint64
	watchers map[chan<- struct{}]struct{}
}

// open returns the journal's group.
func (h *journalHandle) open() (*raftgroup.Group, error) {
	h.mu.RLock()
	g, closed := h.group, h.closed
	h.mu.RUnlock()
	if g != nil && !closed {
		return g, g.Diverged()
	}
	if closed {
		return g, ErrClosed
	}
	if h.node.trans != nil {
		return nil, ErrNotLeader // keepReplicas opens what is to be here
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.group != nil || h.closed {
		return h.group, closedError(h.closed)
	}
	g, err := h.node.openJournal(h)
	if err != nil {
		return nil, err
	}
	h.group = g
	return g, nil
}

func closedError(closed bool) error {
	if closed {
		return ErrClosed
	}
	return nil
}

// journal returns the journal for reading.
func (h *journalHandle) journal() (*storage.Journal, error) {
	g, err := h.open()
	if err != nil {
		return nil, err
	}
	return g.Journal(), nil
}

// reader returns the journal for reading what is committed: of the leader all of it, or, if a follower will do, what is
// known here.
func (h *journalHandle) reader(follower bool) (*storage.Journal, error) {
	g, err := h.open()
	if err != nil {
		return nil, err
	}
	if !follower {
		if err := g.Confirm(); err != nil {
			return nil, err
		}
	}
	return g.Journal(), nil
}

// opened returns the group if it is open.
func (h *journalHandle) opened() *raftgroup.Group {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.group
}

// close closes the journal, if it is open. Not under mu: it waits for appends under way, and whoever hears of those may
// ask who leads.
func (h *journalHandle) close() error {
	h.mu.Lock()
	h.closed = true
	g := h.group
	h.mu.Unlock()
	if g == nil {
		return nil
	}
	err := g.Close()
	h.mu.Lock()
	h.group = nil
	h.mu.Unlock()
	return err
}

func (p *Partition) append(ctx context.Context, b *storage.Batch, done func(Appended)) error {
	if p.tag != "" {
		return metadata.ErrTagged
	}
	g, err := p.handle.open()
	if err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	err = g.AppendOne(ctx, b, func(err error) {
		if err == nil {
			err = b.Err
		}
		a := Appended{BaseOffset: b.Offset, Err: readOnly(g, err)}
		a.LogStart, _ = g.Journal().Bounds(b.Partition)
		done(a)
	})
	return readOnly(g, err)
}

// readOnly marks an error of a group that has ended by itself.
func readOnly(g *raftgroup.Group, err error) error {
	if err == nil {
		return nil
	}
	if cause := g.Err(); cause != nil {
		return fmt.Errorf("%w: %w", ErrReadOnly, cause)
	}
	if cause := g.Journal().Err(); cause != nil && !errors.Is(cause, storage.ErrClosed) {
		return fmt.Errorf("%w: %w", ErrReadOnly, cause)
	}
	return err
}

// LeaderEpoch is the epoch of the partition's leader, or -1 while its journal is
// not open.
func (p *Partition) LeaderEpoch() int32 {
	if g := p.handle.opened(); g != nil {
		return int32(g.Term())
	}
	return -1
}

// Bounds returns the partition's ends.
func (p *Partition) Bounds() (Bounds, error) {
	return p.bounds(false)
}

// Known is Bounds of a replica that need not lead: up to what it knows to be committed.
func (p *Partition) Known() (Bounds, error) { return p.bounds(true) }

// BoundsSince is Bounds with everything that any leader had acknowledged at a time, which is not in the future. Bounds may
// lack what another leader has acknowledged that was elected a moment ago.
func (p *Partition) BoundsSince(at time.Time) (Bounds, error) {
	g, err := p.handle.open()
	if err == nil {
		err = g.ConfirmSince(at)
	}
	if err != nil {
		return Bounds{}, err
	}
	return p.boundsOf(g.Journal()), nil
}

func (p *Partition) bounds(follower bool) (Bounds, error) {
	j, err := p.handle.reader(follower)
	if err != nil {
		return Bounds{}, err
	}
	return p.boundsOf(j), nil
}

func (p *Partition) boundsOf(j *storage.Journal) (b Bounds) {
	b.Start, b.HighWatermark = j.Bounds(uint32(p.number))
	b.LastStable = min(j.LastStable(uint32(p.number)), b.HighWatermark)
	return b
}

// Read returns whole batches from the one that contains the offset on. At the
// end of the partition it returns none. An offset outside the partition is a
// *storage.RangeError, damaged data a *storage.DamageError.
func (p *Partition) Read(r ReadRequest) (Fetched, error) {
	j, err := p.handle.reader(r.Follower)
	if err != nil {
		return Fetched{}, err
	}
	// The stable end is read before the data: what it allows is decided.
	number := uint32(p.number)
	stable := j.LastStable(number)
	limit := int64(-1)
	if r.Committed {
		limit = stable
	}
	f := Fetched{Next: r.Offset}
	f.Start, f.HighWatermark = j.Bounds(number)
	f.LastStable = min(stable, f.HighWatermark)
	if r.Offset < f.Start || r.Offset > f.HighWatermark {
		return Fetched{}, &storage.RangeError{Partition: number, Offset: r.Offset, Start: f.Start, End: f.HighWatermark}
	}
	if r.MaxBytes <= 0 && !r.WholeBatch {
		return f, nil
	}
	read, err := p.read(j, r, limit)
	if err != nil {
		return Fetched{}, err
	}
	if read.Bytes > r.MaxBytes && !r.WholeBatch && !read.Idle {
		read.Release()
		f.Full = true
		return f, nil
	}
	read.Bounds = f.Bounds
	f = read
	if r.Committed && f.Bytes > 0 {
		for _, a := range j.Aborted(number, r.Offset, f.Next) {
			f.Aborted = append(f.Aborted, AbortedTxn{ProducerID: a.Producer, FirstOffset: a.First})
		}
	}
	return f, nil
}

// OffsetForTime returns the first record, in the order of offsets, whose time is
// at or after the given one.
func (p *Partition) OffsetForTime(millis int64) (TimedOffset, error) {
	return p.find(func(j *storage.Journal) (storage.Found, bool, error) {
		return j.OffsetForTime(uint32(p.number), millis)
	})
}

// MaxTimestamp returns the record with the latest time.
func (p *Partition) MaxTimestamp() (TimedOffset, error) {
	return p.find(func(j *storage.Journal) (storage.Found, bool, error) {
		return j.MaxTimestamp(uint32(p.number))
	})
}

func (p *Partition) find(look func(*storage.Journal) (storage.Found, bool, error)) (TimedOffset, error) {
	none := TimedOffset{Offset: -1, Millis: -1, LeaderEpoch: -1}
	j, err := p.handle.reader(false)
	if err != nil {
		return none, err
	}
	f, ok, err := look(j)
	if err != nil || !ok {
		return none, err
	}
	return TimedOffset{Offset: f.Offset, Millis: f.Timestamp, LeaderEpoch: f.LeaderEpoch}, nil
}

// EpochEnd returns the largest leader epoch up to the asked one that the
// partition knows, and the offset behind its last record; -1 and -1 if all that
// is left is newer.
func (p *Partition) EpochEnd(epoch int32) (int32, int64, error) {
	j, err := p.handle.reader(false)
	if err != nil {
		return -1, -1, err
	}
	if epoch > p.LeaderEpoch() {
		return -1, -1, nil // nobody knows yet where it will end
	}
	e, end := j.EpochEnd(uint32(p.number), epoch)
	return e, end, nil
}

// DeleteBefore makes offset the first that can be read, on all replicas, and
// returns what is the first one now. Nothing is deleted before that is agreed: no
// later leader shows it again. The bytes go with their segments.
func (p *Partition) DeleteBefore(offset int64) (int64, error) {
	if p.tag != "" {
		return -1, metadata.ErrTagged
	}
	if p.handle.node.Observes() {
		return -1, ErrObserver
	}
	if _, err := p.handle.reader(false); err != nil {
		return -1, err
	}
	g, err := p.handle.open()
	if err != nil {
		return -1, err
	}
	start, err := g.TrimBefore(uint32(p.number), offset)
	return start, readOnly(g, err)
}
