package cluster

import (
	"errors"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
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
		next.journals = append(next.journals, &journalHandle{
			node: n, stream: s.ID, number: i, name: datadir.CopyName(s.ID, i), durable: next.policy.Durable,
		})
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
