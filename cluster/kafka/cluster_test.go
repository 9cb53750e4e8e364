package kafka_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/internal/retry"
)

// Whatever was answered is there, once and in order, though one node after the other is
// killed: leaders, the coordinator of groups and transactions, or a follower.
func TestNothingAnsweredIsLostWithANode(t *testing.T) {
	kills := min(3*seeds(), 15)
	nodes := processes(t, 3)
	l := newLoad(t, nodes[0].client)
	l.run(func(ctx context.Context) {
		for i := range kills {
			retry.Pause(ctx, time.Duration(500+rand.IntN(2000))*time.Millisecond)
			c := nodes[(i+rand.IntN(2))%len(nodes)]
			c.kill()
			retry.Pause(ctx, time.Duration(rand.IntN(3000))*time.Millisecond)
			c.start()
		}
	})
	l.check()
}

// A group goes on with another coordinator: its members join again, and what it has
// committed is what they go on from.
func TestAGroupOutlivesItsCoordinator(t *testing.T) {
	nodes := processes(t, 3)
	const records = 3000
	p := nodes[0].client(kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	var sent sync.WaitGroup
	var got [records]atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	var consumers sync.WaitGroup
	left := atomic.Int64{}
	left.Store(records)
	for range 2 {
		c := nodes[0].client(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.SessionTimeout(6*time.Second),
			kgo.HeartbeatInterval(100*time.Millisecond), kgo.AutoCommitInterval(100*time.Millisecond))
		consumers.Go(func() {
			for ctx.Err() == nil {
				c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
					var n int
					if _, err := fmt.Sscan(string(r.Value), &n); err != nil {
						t.Errorf("record %q: %v", r.Value, err)
						return
					}
					if !got[n].Swap(true) {
						left.Add(-1)
					}
				})
			}
		})
	}
	for i := range records {
		sent.Add(1)
		p.Produce(context.Background(), &kgo.Record{Value: fmt.Append(nil, i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("record %d: %v", i, err)
			}
			sent.Done()
		})
		if i == records/3 {
			killCoordinator(t, nodes, "g")
		}
		if i%10 == 9 {
			retry.Pause(ctx, time.Millisecond)
		}
	}
	sent.Wait()
	eventually(t, "all records are consumed", func() error {
		if n := left.Load(); n > 0 {
			return fmt.Errorf("%d are missing", n)
		}
		return nil
	})
	adm := kadm.NewClient(nodes[0].client())
	eventually(t, "the group has committed all", func() error {
		lags, err := adm.Lag(t.Context(), "g")
		if err != nil {
			return err
		}
		if lag := lags["g"]; lag.Error() != nil || lag.Lag.Total() != 0 {
			return fmt.Errorf("lag %d, %v", lag.Lag.Total(), lag.Error())
		}
		return nil
	})
	cancel()
	consumers.Wait()
}

// killCoordinator kills the node that coordinates a group.
func killCoordinator(t *testing.T, nodes []*child, group string) {
	t.Helper()
	adm := kadm.NewClient(nodes[0].client())
	eventually(t, "the group's coordinator dies", func() error {
		found := adm.FindGroupCoordinators(t.Context(), group)[group]
		if found.Err != nil {
			return found.Err
		}
		i := slices.IndexFunc(nodes, func(c *child) bool { return c.addr == fmt.Sprintf("%s:%d", found.Host, found.Port) })
		if i < 0 {
			return fmt.Errorf("coordinator is at %s:%d", found.Host, found.Port)
		}
		nodes[i].kill()
		return nil
	})
}

// KIP-392: the client's rack decides.
func TestAConsumerReadsFromTheReplicaInItsRack(t *testing.T) {
	ps := newPeers(t, 3)
	ps.topic("t", 1)
	lead := ps.leader("t", 0)
	near := (lead + 1) % 3
	fetches := &fetchCount{}
	produce(t, ps.client(), numbered("t", 100)...)
	c := ps.client(kgo.ConsumeTopics("t"), kgo.Rack(fmt.Sprint("r", near)), kgo.WithHooks(fetches), kgo.FetchMaxWait(100*time.Millisecond))
	got := consume(t, c, 100)
	p := ps.client()
	// Where the follower falls behind for a moment the leader answers itself.
	for deadline := time.Now().Add(60 * time.Second); fetches.of(ps.Node(near).ID()) < 10; {
		if time.Now().After(deadline) {
			t.Fatalf("the near replica answered %d fetches, the leader %d", fetches.of(ps.Node(near).ID()), fetches.of(ps.Node(lead).ID()))
		}
		produce(t, p, &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "value %d", len(got))})
		got = append(got, consume(t, c, 1)...)
	}
	for i, r := range got {
		if want := fmt.Sprint("value ", i); string(r.Value) != want {
			t.Fatalf("record %d is %q, want %q", i, r.Value, want)
		}
	}
}

// fetchCount counts fetches by the node that answered them.
type fetchCount struct {
	mu sync.Mutex
	by map[int32]int
}

var _ kgo.HookBrokerE2E = (*fetchCount)(nil)

func (f *fetchCount) OnBrokerE2E(meta kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if key != int16(kmsg.Fetch) || e.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[int32]int{}
	}
	f.by[meta.NodeID]++
}

func (f *fetchCount) of(id int32) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by[id]
}

// Every node answers who leads, and only the leader takes and gives records.
func TestOnlyTheLeaderServes(t *testing.T) {
	ps := newPeers(t, 3)
	ps.topic("t", 1)
	c := ps.client()
	eventually(t, "the nodes answer for one leader", func() error { // another one may be elected at any time
		lead := ps.leader("t", 0)
		part, err := ps.Node(lead).Partition("t", 0)
		if err != nil {
			return err
		}
		id, epoch := part.Leader()
		epoch += int32(part.Stream().CreatedMillis/1000 - 1_735_689_600) // as clients are told it
		for i, node := range ps.Nodes() {
			if err := answersFor(t, c.Broker(int(node.ID())), part.Key().Stream, i == lead, id, epoch); err != nil {
				return fmt.Errorf("node %d: %w", node.ID(), err)
			}
		}
		for known, want := range map[int32]int16{epoch - 1: kerr.FencedLeaderEpoch.Code, epoch + 1: kerr.UnknownLeaderEpoch.Code, epoch: 0} {
			if got := fetchAt(t, c.Broker(int(id)), part.Key().Stream, known).Topics[0].Partitions[0].ErrorCode; got != want {
				return fmt.Errorf("Fetch of who knows epoch %d of %d: error %d, want %d", known, epoch, got, want)
			}
		}
		return nil
	})
}

// answersFor checks what a node says of the partition that a node leads in an epoch.
func answersFor(t *testing.T, at *kgo.Broker, topic metadata.StreamID, leads bool, id, epoch int32) error {
	t.Helper()
	meta := metadataOf(t, at, "t")
	if p := meta.Topics[0].Partitions[0]; len(meta.Brokers) != 3 || p.Leader != id || p.LeaderEpoch != epoch || len(p.Replicas) != 3 || len(p.ISR) != 3 {
		return fmt.Errorf("%d brokers, partition %+v", len(meta.Brokers), p)
	}
	want, told, nodes := kerr.NotLeaderForPartition.Code, [2]int32{id, epoch}, 3
	if leads {
		want, told, nodes = 0, [2]int32{-1, -1}, 0
	}
	produced, fetched := produceAt(t, at, topic), fetchAt(t, at, topic, -1)
	p, f := produced.Topics[0].Partitions[0], fetched.Topics[0].Partitions[0]
	if list := listAt(t, at, "t"); p.ErrorCode != want || f.ErrorCode != want || list != want {
		return fmt.Errorf("errors %d, %d and %d, want %d", p.ErrorCode, f.ErrorCode, list, want)
	}
	if l := [2]int32{p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch}; l != told || len(produced.Brokers) != nodes {
		return fmt.Errorf("Produce names the leader %v and %d nodes, want %v and %d", l, len(produced.Brokers), told, nodes)
	}
	if l := [2]int32{f.CurrentLeader.LeaderID, f.CurrentLeader.LeaderEpoch}; l != told || len(fetched.Brokers) != nodes {
		return fmt.Errorf("Fetch names the leader %v and %d nodes, want %v and %d", l, len(fetched.Brokers), told, nodes)
	}
	return nil
}

func metadataOf(t *testing.T, at *kgo.Broker, topic string) *kmsg.MetadataResponse {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, asked)
	return requestAt(t, at, req).(*kmsg.MetadataResponse)
}

func produceAt(t *testing.T, at *kgo.Broker, id metadata.StreamID) *kmsg.ProduceResponse {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 30_000
	topic := kmsg.NewProduceRequestTopic()
	topic.TopicID = id
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = plainBatch("a")
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return requestAt(t, at, req).(*kmsg.ProduceResponse)
}

func fetchAt(t *testing.T, at *kgo.Broker, id metadata.StreamID, epoch int32) *kmsg.FetchResponse {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch = 1<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.TopicID = id
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.PartitionMaxBytes = epoch, 1<<20
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return requestAt(t, at, req).(*kmsg.FetchResponse)
}

func listAt(t *testing.T, at *kgo.Broker, name string) int16 {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = name
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return requestAt(t, at, req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode
}

// seeds multiplies what a test takes chances with: DAYBOOK_SEEDS, or 1.
func seeds() int {
	n, err := strconv.Atoi(os.Getenv("DAYBOOK_SEEDS"))
	if err != nil {
		return 1
	}
	return n
}
