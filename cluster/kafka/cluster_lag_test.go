package kafka_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/vfs"
)

// What a consumer wants of a replica may only not be there yet: that is never out of range.
func TestAFollowerNeverSaysOutOfRangeOfWhatMayCome(t *testing.T) {
	ps := newPeers(t, 3)
	ps.topic("t", 1)
	produce(t, ps.client(), numbered("t", 10)...)
	lead := ps.leader("t", 0)
	near := (lead + 1) % 3
	c := ps.client()
	fetch := func(offset int64) kmsg.FetchResponseTopicPartition {
		t.Helper()
		part, err := ps.Node(near).Partition("t", 0)
		if err != nil {
			t.Fatal(err)
		}
		return fetchNear(t, c.Broker(int(ps.Node(near).ID())), part.Key().Stream, fmt.Sprint("r", near), offset)
	}
	eventually(t, "the replica has all", func() error {
		if p := fetch(9); p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
			return fmt.Errorf("%d bytes, %w", len(p.RecordBatches), kerr.ErrorForCode(p.ErrorCode))
		}
		return nil
	})
	if p := fetch(10); p.ErrorCode != 0 || len(p.RecordBatches) != 0 {
		t.Errorf("at the end: %v and %d bytes, want to have waited", kerr.ErrorForCode(p.ErrorCode), len(p.RecordBatches))
	}
	for _, offset := range []int64{11, 1000} { // the leader may have it by now
		if p := fetch(offset); p.ErrorCode != kerr.OffsetNotAvailable.Code {
			t.Errorf("offset %d: %v, want OFFSET_NOT_AVAILABLE", offset, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	// What is gone is out of range wherever it is asked for.
	if _, err := kadm.NewClient(c).DeleteRecords(t.Context(), offsetsOf("t", 0, 5)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica knows that records are gone", func() error {
		if p := fetch(4); p.ErrorCode != kerr.OffsetOutOfRange.Code {
			return fmt.Errorf("%w, want OFFSET_OUT_OF_RANGE", kerr.ErrorForCode(p.ErrorCode))
		}
		return nil
	})
}

// fetchNear fetches from a replica as a consumer in its rack, which waits a little.
func fetchNear(t *testing.T, at *kgo.Broker, id metadata.StreamID, rack string, offset int64) kmsg.FetchResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch, req.Rack, req.MaxWaitMillis, req.MinBytes = 1<<20, -1, rack, 50, 1
	topic := kmsg.NewFetchRequestTopic()
	topic.TopicID = id
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return requestAt(t, at, req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// KAFKA-14372: a consumer is not left waiting at the replica in its rack, whose disk does not answer, for what the
// leader has long had.
func TestAConsumerDoesNotWaitAtALaggingReplica(t *testing.T) {
	var disks [3]*vfs.Faulty
	ps := newPeersOn(t, 3, func(place int, o *cluster.Options) {
		disks[place] = vfs.NewFaulty(vfs.OS{})
		o.FS = disks[place]
	})
	ps.topic("t", 1)
	produce(t, ps.client(), numbered("t", 10)...)
	lead := ps.leader("t", 0)
	near := (lead + 1) % 3
	part, err := ps.Node(near).Partition("t", 0)
	if err != nil {
		t.Fatal(err)
	}
	fetches := &fetchCount{}
	c := ps.client(kgo.ConsumeTopics("t"), kgo.Rack(fmt.Sprint("r", near)), kgo.WithHooks(fetches), kgo.FetchMaxWait(100*time.Millisecond))
	consume(t, c, 10)
	eventually(t, "the consumer is at the replica in its rack", func() error {
		produce(t, ps.client(), numbered("t", 1)...)
		consume(t, c, 1)
		if fetches.of(ps.Node(near).ID()) == 0 {
			return errors.New("it asks the leader alone")
		}
		return nil
	})
	release, stalled := make(chan struct{}), make(chan struct{})
	defer close(release)
	disks[near].Inject(vfs.Fault{Op: vfs.OpSync, Name: part.Key().Stream.String(), Stall: release, Stalled: stalled})
	p := ps.client()
	produce(t, p, numbered("t", 1)...)
	<-stalled
	produce(t, p, numbered("t", 4)...) // as few that nothing else would tell that it lags
	consume(t, c, 5)
}
