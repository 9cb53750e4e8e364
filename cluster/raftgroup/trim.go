package raftgroup

import "github.com/daybook-data/daybook/storage"

// TrimBefore makes offset the first that can be read in a partition and returns what is the first one then. It is an entry
// of the log: when it returns, every later leader knows it, and replicas delete when they learn that it is committed. After
// ErrUnknownOutcome it may or may not take effect; to ask again does no harm. Only the leader can.
func (g *Group) TrimBefore(partition uint32, offset int64) (start int64, err error) {
	if g.mirrors() {
		return -1, ErrObserver
	}
	low, end := g.journal.Bounds(partition)
	if offset < 0 || offset > end {
		return low, &storage.RangeError{Partition: partition, Offset: offset, Start: low, End: end}
	}
	if offset <= low {
		return low, nil
	}
	if err := g.applyCommand(storage.TrimCommand(partition, offset)); err != nil {
		return low, err
	}
	start, _ = g.journal.Bounds(partition) // raft answers what is applied
	return start, nil
}

// applyCommand replicates an entry of its own and returns when it is applied here.
func (g *Group) applyCommand(data []byte) error {
	n := storage.CommandBytes(len(data))
	if err := g.journal.Reserve(n); err != nil {
		return err
	}
	defer g.journal.Unreserve(n)
	return appendErr(g.await(g.raft.Apply(data, 0)))
}
