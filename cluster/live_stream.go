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

// newLiveStream makes a stream that goes on with the journals it had so far.
func newLiveStream(all *journals, s *metadata.Stream, old []*journalHandle) *liveStream {
	l := &liveStream{stream: s, policy: s.Policy(), journals: old}
	for i := int32(len(old)); i < s.Journals; i++ {
		l.journals = append(l.journals, &journalHandle{
			all: all, stream: s.ID, number: i, name: datadir.CopyName(s.ID, i), durable: l.policy.Durable,
		})
	}
	l.partitions = make([]Partition, s.Partitions)
	for i := range l.partitions {
		number := int32(i)
		l.partitions[i] = Partition{stream: s, policy: l.policy, handle: l.journals[s.JournalOf(number)], number: number}
	}
	return l
}

func (l *liveStream) close() error {
	var errs []error
	for _, h := range l.journals {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}
