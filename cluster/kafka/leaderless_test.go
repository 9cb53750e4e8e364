package kafka_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka"
)

// leaderlessPeers is three nodes of which only one runs, which neither leads partition 0 of "t" nor knows who does. It
// returns the place of that one, and of another.
func leaderlessPeers(t *testing.T, wait time.Duration) (ps *peers, left, other int) {
	t.Helper()
	ps = newPeers(t, 3, func(o *kafka.Options) { o.LeaderWait = wait })
	if _, err := kadm.NewClient(ps.client()).CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	other = ps.Leader("t", 0)
	left = (other + 1) % 3
	ps.Until("the copy that is left to follow", func() bool { // else it goes by what the leader said of itself, for ever
		p, err := ps.Node(left).Partition("t", 0)
		if err != nil {
			return false
		}
		id, epoch := p.Leader()
		return id >= 0 && epoch == p.LeaderEpoch()
	})
	ps.down((other + 2) % 3)
	ps.down(other)
	ps.Until("nobody to lead", func() bool {
		p, err := ps.Node(left).Partition("t", 0)
		if err != nil {
			return false
		}
		id, _ := p.Leader()
		return id < 0
	})
	return ps, left, other
}

// asking sends a request to one node and returns where its answer will be.
func asking[R kmsg.Response](t *testing.T, ps *peers, place int, req kmsg.Request) <-chan R {
	t.Helper()
	c := ps.client(kgo.SeedBrokers(ps.faces[place].addr))
	answered := make(chan R, 1)
	go func() {
		resp, err := c.SeedBrokers()[0].Request(t.Context(), req)
		if err != nil {
			t.Errorf("asking %T: %v", req, err)
			close(answered)
			return
		}
		answered <- resp.(R)
	}()
	return answered
}

func produceRequest(ps *peers, place int) *kmsg.ProduceRequest {
	stream, _ := ps.Node(place).Meta().Stream("t")
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 60_000
	topic, p := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	p.Records = plainBatch("a")
	topic.Topic, topic.TopicID, topic.Partitions = "t", stream.ID, append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

func fetchRequest(ps *peers, place int) *kmsg.FetchRequest {
	stream, _ := ps.Node(place).Meta().Stream("t")
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 60_000, 1, 1<<20, -1
	topic, p := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.PartitionMaxBytes = -1, 1<<20
	topic.Topic, topic.TopicID, topic.Partitions = "t", stream.ID, append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

// Who produces or fetches while nobody leads is told of the next leader by the same answer.
func TestRequestsWaitForTheNextLeader(t *testing.T) {
	t.Parallel()
	ps, left, other := leaderlessPeers(t, time.Minute)
	produced := asking[*kmsg.ProduceResponse](t, ps, left, produceRequest(ps, left))
	fetched := asking[*kmsg.FetchResponse](t, ps, left, fetchRequest(ps, left))
	ps.Restart(other)
	ps.serve(other)
	if r := <-produced; r != nil {
		p := r.Topics[0].Partitions[0]
		if p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID < 1 {
			t.Errorf("the producer was told %+v", p)
		}
	}
	ps.client().ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("b")}) // a fetch that the new leader got waits for it
	if r := <-fetched; r != nil {
		p := r.Topics[0].Partitions[0]
		if led := p.ErrorCode == 0 && len(p.RecordBatches) > 0; !led && (p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID < 1) {
			t.Errorf("the consumer was told %+v", p)
		}
	}
}

// Without a leader for longer the answers come, and say that there is none.
func TestRequestsDoNotWaitForALeaderForever(t *testing.T) {
	t.Parallel()
	ps, left, _ := leaderlessPeers(t, 20*time.Millisecond)
	if r := <-asking[*kmsg.ProduceResponse](t, ps, left, produceRequest(ps, left)); r != nil {
		if p := r.Topics[0].Partitions[0]; p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID >= 0 {
			t.Errorf("the producer was told %+v", p)
		}
	}
	if r := <-asking[*kmsg.FetchResponse](t, ps, left, fetchRequest(ps, left)); r != nil {
		if p := r.Topics[0].Partitions[0]; p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID >= 0 {
			t.Errorf("the consumer was told %+v", p)
		}
	}
}
