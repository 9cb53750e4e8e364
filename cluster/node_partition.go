package cluster

import (
	"context"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// Partition is one partition of a stream on this node. It is safe for concurrent
// use, and may be kept: it then goes on with the settings the stream had when it
// was got.
type Partition struct {
	stream *metadata.Stream
	policy metadata.Policy
	handle *journalHandle
	number int32
	tag    string // empty: all of it
}

// Partition returns a partition of a stream by the stream's name, or by the name
// of one of its tags: then it reads only that, and cannot be changed. The errors are
// ErrUnknownStream and ErrUnknownPartition; the journal is opened by the first
// use.
func (n *Node) Partition(stream string, partition int32) (*Partition, error) {
	name, tag := metadata.SplitTag(stream)
	s, ok := n.meta.Stream(name)
	if !ok || metadata.JoinTag(name, tag) != stream {
		return nil, metadata.ErrUnknownStream
	}
	p, err := n.partitionOf(s, partition)
	if err != nil || tag == "" {
		return p, err
	}
	tagged := *p
	tagged.tag = tag
	return &tagged, nil
}

// PartitionByKey returns a partition of a stream by the stream's id.
func (n *Node) PartitionByKey(p metadata.StreamPartition) (*Partition, error) {
	s, ok := n.meta.StreamByID(p.Stream)
	if !ok {
		return nil, metadata.ErrUnknownStream
	}
	return n.partitionOf(s, p.Partition)
}

func (n *Node) partitionOf(s *metadata.Stream, partition int32) (*Partition, error) {
	if partition < 0 || partition >= s.Partitions {
		return nil, metadata.ErrUnknownPartition
	}
	l, err := n.live(s)
	if err != nil {
		return nil, err
	}
	return &l.partitions[partition], nil
}

// Key names the partition for good.
func (p *Partition) Key() metadata.StreamPartition {
	return metadata.StreamPartition{Stream: p.stream.ID, Partition: p.number, Tag: p.tag}
}

// Policy is what the stream's settings mean.
func (p *Partition) Policy() metadata.Policy { return p.policy }

// Appended is the result of an append.
type Appended struct {
	// BaseOffset is the offset of the batch's first record; of a batch that had
	// been stored before it is the one it got then.
	BaseOffset int64
	// LogStart is the first offset that can be read.
	LogStart int64
	// Err is why the batch was not stored.
	Err error
}

// Append checks a record batch, puts it behind those that were put before it, and
// returns without waiting for the disk; it waits only for room in the journal's
// queue. done is called once, from another goroutine, when the batch is stored as
// the stream's durability promises, or refused. The batch's bytes belong to the
// journal until then. If Append returns an error done is never called.
func (p *Partition) Append(ctx context.Context, batch []byte, done func(Appended)) error {
	return p.append(ctx, &storage.Batch{Partition: uint32(p.number), Data: batch}, done)
}

// AppendMarker ends a producer's transaction in this partition, which this node has to lead. [Node.WriteMarker] does it
// wherever the leader is.
func (p *Partition) AppendMarker(ctx context.Context, producerID int64, epoch int16, commit bool, done func(Appended)) error {
	return p.appendMarker(ctx, producerID, epoch, commit, 0, done)
}

func (p *Partition) appendMarker(ctx context.Context, producerID int64, epoch int16, commit bool, coordinatorEpoch uint64, done func(Appended)) error {
	marker := storage.ControlBatch(producerID, epoch, int32(coordinatorEpoch), commit, time.Now().UnixMilli())
	return p.append(ctx, &storage.Batch{Partition: uint32(p.number), Data: marker, Marker: true}, done)
}

// Bounds are the ends of a partition.
type Bounds struct {
	Start         int64 // first offset that can be read
	LastStable    int64 // below it every transaction is decided
	HighWatermark int64 // one behind the last record that can be read
}

// ReadRequest says what to read.
type ReadRequest struct {
	Offset   int64
	MaxBytes int
	// WholeBatch returns the first batch even if it is larger than MaxBytes.
	WholeBatch bool
	// Committed leaves out what open transactions have written and everything
	// behind it, and tells which transactions were aborted.
	Committed bool
	// Follower lets a replica answer that does not lead: up to what it knows to be
	// committed, which may be less than the leader knows, and never more.
	Follower bool
}

// Fetched is what a read found. Release it.
type Fetched struct {
	Bounds
	Pieces  [][]byte // whole batches in order; valid until Release
	Bytes   int      // of all pieces
	Next    int64    // the offset behind the last record
	Aborted []AbortedTxn
	// Idle says that nothing was found but offsets to pass over: a reader that can
	// wait should.
	Idle bool
	// Full says that there is a batch, but one larger than MaxBytes.
	Full  bool
	chunk *storage.Chunk
}

// AbortedTxn names a transaction whose records a reader of committed ones must
// skip, from FirstOffset up to its marker.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// Release gives the memory of the pieces back. It may be called more than once,
// and on the zero value.
func (f *Fetched) Release() {
	if f.chunk != nil {
		f.chunk.Release()
		f.chunk, f.Pieces = nil, nil
	}
}

// TimedOffset is an offset found by time; both fields are -1 if there is none.
type TimedOffset struct {
	Offset      int64
	Millis      int64
	LeaderEpoch int32
}

// Watch tells when any of its partitions has new records or another leader. Close it.
type Watch struct {
	changed chan struct{}
	stops   []func()
}

// NewWatch returns a watch of the partitions whose journals can be opened.
func NewWatch(partitions []*Partition) *Watch {
	w := &Watch{changed: make(chan struct{}, 1)}
	numbers := map[*journalHandle][]uint32{}
	for _, p := range partitions {
		numbers[p.handle] = append(numbers[p.handle], uint32(p.number))
	}
	for h, of := range numbers {
		if j, err := h.journal(); err == nil {
			w.stops = append(w.stops, j.Notify(w.changed, of...))
		}
		if h.node.trans != nil {
			w.stops = append(w.stops, h.watch(w.changed))
		}
	}
	return w
}

// Changed receives a value after new records have come. It may also do so once
// without: look again.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Close ends the watch.
func (w *Watch) Close() {
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
}
