package kafka_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// observing starts an observer of a cluster's nodes with its Kafka face, and waits until it has a topic.
func observing(t *testing.T, ps *peers, topics ...string) *broker {
	t.Helper()
	var upstreams []string
	for i := range ps.faces {
		upstreams = append(upstreams, ps.Address(i))
	}
	b := newBroker(t, false, func(o *cluster.Options, _ *kafka.Options) {
		o.Observe = &cluster.Observe{Upstreams: upstreams, Rack: "far"}
	})
	for _, topic := range topics {
		eventually(t, topic+" at the observer", func() error {
			if _, ok := b.node.Meta().Stream(topic); !ok {
				return errors.New("it is not known")
			}
			return nil
		})
	}
	return b
}

// soleTopic creates a topic on one node.
func soleTopic(t *testing.T, ps *peers) {
	t.Helper()
	if r, err := kadm.NewClient(ps.client()).CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
}

// Transactions, committed and aborted, plain records: a consumer of the observer gets what one of the cluster gets, whoever
// made it, alone or in a group.
func TestConsumersOfAnObserverSeeWhatTheClusterHas(t *testing.T) {
	ps := newPeers(t, 3)
	ps.topic("t", 2)
	b := observing(t, ps, "t")
	c := ps.client(kgo.TransactionalID("id"), kgo.DefaultProduceTopic("t"))
	var want []string
	for i := range 10 {
		end, values := kgo.TryCommit, []string{fmt.Sprint("kept ", i), fmt.Sprint("kept too ", i)}
		if i%3 == 1 {
			end, values = kgo.TryAbort, []string{"aborted", "aborted too"}
		} else {
			want = append(want, values...)
		}
		inTxn(t, c, end, values...)
	}
	plain := ps.client(kgo.DefaultProduceTopic("t"))
	for i := range 30 {
		value := fmt.Sprint("plain ", i)
		produce(t, plain, &kgo.Record{Value: []byte(value)})
		want = append(want, value)
	}
	values := func(c *kgo.Client, n int) (all []string) {
		for _, r := range consume(t, c, n) {
			all = append(all, fmt.Sprintf("%d/%d %s", r.Partition, r.Offset, r.Value))
		}
		slices.Sort(all)
		return all
	}
	for name, opts := range map[string][]kgo.Opt{
		"alone": {kgo.ConsumeTopics("t")}, "in a group": {kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"), kgo.DisableAutoCommit()},
	} {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
		there, here := values(ps.client(opts...), len(want)), values(b.client(opts...), len(want))
		if !slices.Equal(there, here) {
			t.Errorf("%s: the cluster gives %d records, the observer others:\n%q\n%q", name, len(there), there, here)
		}
	}
	lines := kcat(t, b, "", "-C", "-t", "t", "-e", "-q", "-X", "isolation.level=read_committed")
	java := tool(t, b, "", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", b.addr, "--topic", "t", "--group", "java",
		"--from-beginning", "--isolation-level", "read_committed", "--max-messages", fmt.Sprint(len(want)), "--timeout-ms", "60000")
	slices.Sort(want)
	for client, said := range map[string]string{"kcat": lines, "Java": java} {
		var got []string
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "kept") || strings.HasPrefix(line, "plain") || strings.HasPrefix(line, "aborted") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s got %d records, want %d:\n%.1000s", client, len(got), len(want), said)
		}
	}
}

// Consumers go on where they were over restarts of their observer, while the cluster goes on: each record once and in
// order. So does a group, from what it has committed.
func TestConsumersOutliveRestartsOfTheirObserver(t *testing.T) {
	ps := newPeers(t, 1)
	soleTopic(t, ps)
	b := observing(t, ps, "t")
	p := ps.client(kgo.DefaultProduceTopic("t"))
	fromStart := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	alone := b.client(kgo.ConsumeTopics("t"), fromStart)
	check := func(got []*kgo.Record, first int) {
		t.Helper()
		for i, r := range got {
			if want := fmt.Sprint(first + i); string(r.Value) != want || r.Offset != int64(first+i) {
				t.Fatalf("record %d is %q at offset %d, want %q", first+i, r.Value, r.Offset, want)
			}
		}
	}
	n := 0
	for range 3 {
		first := n
		for ; n < first+20; n++ {
			produce(t, p, &kgo.Record{Value: fmt.Append(nil, n)})
		}
		got := alone.PollRecords(t.Context(), 10).Records()
		group := b.client(kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"), kgo.DisableAutoCommit(), fromStart)
		read := consume(t, group, 20)
		check(read, first)
		if err := group.CommitRecords(t.Context(), read[len(read)-1]); err != nil {
			t.Fatal(err)
		}
		group.Close()
		b.restart()
		check(append(got, consume(t, alone, 20-len(got))...), first)
	}
	if groups, err := kadm.NewClient(ps.client()).ListGroups(t.Context()); err != nil || len(groups) > 0 {
		t.Errorf("the cluster knows the groups %v (%v), want none", groups.Groups(), err)
	}
}

// What an observer is not asked for, and what it does not have yet.
func TestAnObserverRefusesWhatChangesSomething(t *testing.T) {
	ps := newPeers(t, 1)
	soleTopic(t, ps)
	b := observing(t, ps, "t")
	for name, opts := range map[string][]kgo.Opt{
		"plain": {kgo.DisableIdempotentWrite()}, "idempotent": nil,
	} {
		started := time.Now()
		err := b.client(opts...).ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("x")}).FirstErr()
		if !errors.Is(err, kerr.PolicyViolation) {
			t.Errorf("%s: produced to an observer: %v after %v", name, err, time.Since(started))
		}
	}
	adm := b.admin()
	created, err := adm.CreateTopics(t.Context(), 1, 1, nil, "new")
	if err != nil || !errors.Is(created["new"].Err, kerr.PolicyViolation) || !strings.Contains(created["new"].ErrMessage, "observer") {
		t.Errorf("CreateTopics: %+v, %v", created, err)
	}
	if r, err := adm.DeleteTopics(t.Context(), "t"); err != nil || !errors.Is(r["t"].Err, kerr.PolicyViolation) {
		t.Errorf("DeleteTopics: %+v, %v", r, err)
	}
	trim := kadm.Offsets{}
	trim.AddOffset("t", 0, 0, -1)
	if r, err := adm.DeleteRecords(t.Context(), trim); err != nil || !errors.Is(r["t"][0].Err, kerr.PolicyViolation) {
		t.Errorf("DeleteRecords: %+v, %v", r, err)
	}
	if r, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("1")}}, "t"); err != nil || !errors.Is(r[0].Err, kerr.PolicyViolation) {
		t.Errorf("AlterConfigs: %+v, %v", r, err)
	}
	txn := b.client(kgo.TransactionalID("id"), kgo.DefaultProduceTopic("t"))
	if err := txn.BeginTransaction(); err == nil {
		err = txn.ProduceSync(t.Context(), &kgo.Record{Value: []byte("x")}).FirstErr()
		if !errors.Is(err, kerr.PolicyViolation) {
			t.Errorf("a transaction: %v", err)
		}
	}
	stream, _ := b.node.Meta().Stream("t")
	eventually(t, "the copy is open", func() error {
		switch code := fetchOffset(t, b.client().Broker(int(b.node.ID())), stream.ID, 7); code {
		case kerr.OffsetNotAvailable.Code:
			return nil
		default:
			return fmt.Errorf("a fetch of what is not here is answered with error %d", code)
		}
	})
	if brokers, err := adm.ListBrokers(t.Context()); err != nil || len(brokers) != 1 || brokers[0].NodeID != b.node.ID() || brokers[0].Rack == nil || *brokers[0].Rack != "far" {
		t.Errorf("the brokers are %+v (%v)", brokers, err)
	}
	if listed, err := adm.ListTopics(t.Context(), "other"); err != nil || !errors.Is(listed["other"].Err, kerr.UnknownTopicOrPartition) {
		t.Errorf("a topic that is not there: %+v, %v", listed, err)
	}
}

// fetchOffset is the error that a fetch of an offset is answered with.
func fetchOffset(t *testing.T, at *kgo.Broker, id metadata.StreamID, offset int64) int16 {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch = 1<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.TopicID = id
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.FetchOffset, p.PartitionMaxBytes = -1, offset, 1<<20
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return requestAt(t, at, req).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode
}
