package cluster

import "github.com/daybook-data/daybook/cluster/metadata"

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
	p, err := n.journals.partition(s, partition)
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
	return n.journals.partition(s, p.Partition)
}

// Key names the partition for good.
func (p *Partition) Key() metadata.StreamPartition {
	return metadata.StreamPartition{Stream: p.stream.ID, Partition: p.number, Tag: p.tag}
}

// Stream is the stream that the partition is of, as it was when the partition was got. Do not change it.
func (p *Partition) Stream() *metadata.Stream { return p.stream }

// Policy is what the stream's settings mean.
func (p *Partition) Policy() metadata.Policy { return p.policy }
