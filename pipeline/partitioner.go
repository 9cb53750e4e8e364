package pipeline

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// partitioner chooses partitions as Kafka's own clients do, so that a record of a key
// lands where another client would put it. It is not safe for concurrent use.
type partitioner struct {
	by    string
	n     int
	hash  kgo.TopicPartitioner
	probe kgo.Record
	next  int32
}

// newPartitioner returns the choice for a stream: by is key, table or none.
func newPartitioner(by string, partitions int) *partitioner {
	return &partitioner{by: by, n: partitions, hash: kgo.StickyKeyPartitioner(nil).ForTopic("")}
}

// choose returns the partition of a record.
//
// Guarantee 7.
func (p *partitioner) choose(r *Record) int32 {
	if p.n == 1 {
		return 0
	}
	switch {
	case p.by == "key" && r.Key != nil:
		return p.hashed(r.Key)
	case p.by == "table" && r.Table != "":
		return p.hashed([]byte(r.Table))
	}
	return p.next
}

func (p *partitioner) hashed(key []byte) int32 {
	p.probe.Key = key
	return int32(p.hash.Partition(&p.probe, p.n))
}

// turn moves records without a key on to the next partition; called once a batch, so
// that batches stay whole.
func (p *partitioner) turn() { p.next = (p.next + 1) % int32(p.n) }
