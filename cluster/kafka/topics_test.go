package kafka_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

func TestTopicsAreCreatedGrownListedAndDeleted(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		adm := b.admin()
		b.topic("t", 2, map[string]string{"retention.ms": "1000"})
		if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, "t"); !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Errorf("creating it again: %v, want TOPIC_ALREADY_EXISTS", err)
		}
		if _, err := adm.CreatePartitions(t.Context(), 3, "t"); err != nil {
			t.Fatal(err)
		}
		topics, err := b.admin().ListTopics(t.Context())
		if err != nil || len(topics) != 1 || len(topics["t"].Partitions) != 5 || topics["t"].ID == (kadm.TopicID{}) {
			t.Fatalf("topics are %+v, %v; want t with 5 partitions", topics, err)
		}
		id := topics["t"].ID
		b.restart()
		if topics, err = b.admin().ListTopics(t.Context()); err != nil || topics["t"].ID != id {
			t.Errorf("id was %v, is %v after the restart", id, topics["t"].ID)
		}
		if _, err := adm.DeleteTopic(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		if topics, err = b.admin().ListTopics(t.Context()); err != nil || len(topics) != 0 {
			t.Errorf("left are %v, %v", topics, err)
		}
		if _, err := adm.DeleteTopic(t.Context(), "t"); !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Errorf("deleting it again: %v, want UNKNOWN_TOPIC_OR_PARTITION", err)
		}
	})
}

func TestImpossibleTopicsAreRefusedByName(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		for name, c := range map[string]struct {
			partitions int32
			replicas   int16
			topic      string
			configs    map[string]*string
			want       error
		}{
			"name":        {1, 1, "a b", nil, kerr.InvalidTopicException},
			"partitions":  {0, 1, "t", nil, kerr.InvalidPartitions},
			"replicas":    {1, 3, "t", nil, kerr.InvalidReplicationFactor},
			"setting":     {1, 1, "t", map[string]*string{"no.such": kadm.StringPtr("1")}, kerr.InvalidConfig},
			"value":       {1, 1, "t", map[string]*string{"retention.ms": kadm.StringPtr("soon")}, kerr.InvalidConfig},
			"compression": {1, 1, "t", map[string]*string{"compression.type": kadm.StringPtr("gzip")}, kerr.InvalidConfig},
		} {
			if _, err := b.admin().CreateTopic(t.Context(), c.partitions, c.replicas, c.configs, c.topic); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		if topics, err := b.admin().ListTopics(t.Context()); err != nil || len(topics) != 0 {
			t.Errorf("there are %v, %v; want none", topics, err)
		}
	})
}

func TestTopicsAreCreatedOnDemandOnlyWhereBothSidesAllowIt(t *testing.T) {
	for _, c := range []struct {
		server, client, want bool
	}{{true, true, true}, {true, false, false}, {false, true, false}} {
		b := newBroker(t, true, func(_ *cluster.Options, k *kafka.Options) {
			k.NoAutoCreate, k.AutoPartitions = !c.server, 4
		})
		req := kmsg.NewPtrMetadataRequest()
		req.AllowAutoTopicCreation = c.client
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr("t")
		req.Topics = append(req.Topics, topic)
		resp, err := req.RequestWith(t.Context(), b.client())
		if err != nil {
			t.Fatal(err)
		}
		got := resp.Topics[0]
		if created := got.ErrorCode == 0 && len(got.Partitions) == 4; created != c.want {
			t.Errorf("server %v, client %v: created %v (%v), want %v", c.server, c.client, created, kerr.ErrorForCode(got.ErrorCode), c.want)
		}
	}
}

func TestSettingsAreListedWithDefaultsAndChanged(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		adm := b.admin()
		b.topic("t", 1, map[string]string{"retention.ms": "1000", "cleanup.policy": "compact"})
		value := func(name string) (string, kmsg.ConfigSource) {
			t.Helper()
			described, err := adm.DescribeTopicConfigs(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range described[0].Configs {
				if c.Key == name {
					return c.MaybeValue(), c.Source
				}
			}
			t.Fatalf("%s is not listed", name)
			return "", 0
		}
		for name, want := range map[string]string{
			"retention.ms": "1000", "cleanup.policy": "compact", "compression.type": "producer",
			"max.message.bytes": "8388608", "min.insync.replicas": "1", "daybook.durability": "durable",
			"message.timestamp.type": "CreateTime", "segment.bytes": "134217728",
		} {
			if got, _ := value(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		alter := func(changes ...kadm.AlterConfig) error {
			altered, err := adm.AlterTopicConfigs(t.Context(), changes, "t")
			if err != nil {
				t.Fatal(err)
			}
			return altered[0].Err
		}
		if err := alter(kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("5")},
			kadm.AlterConfig{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: kadm.StringPtr("delete")}); err != nil {
			t.Fatal(err)
		}
		b.restart()
		if got, source := value("retention.ms"); got != "5" || source != kmsg.ConfigSourceDynamicTopicConfig {
			t.Errorf("retention.ms is %q from %v, want 5 from the topic", got, source)
		}
		if got, _ := value("cleanup.policy"); got != "compact,delete" {
			t.Errorf("cleanup.policy is %q, want compact,delete", got)
		}
		if err := alter(kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "retention.ms"}); err != nil {
			t.Fatal(err)
		}
		if got, source := value("retention.ms"); got != "604800000" || source != kmsg.ConfigSourceDefaultConfig {
			t.Errorf("retention.ms is %q from %v, want the default", got, source)
		}
		for _, bad := range []kadm.AlterConfig{
			{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("x")},
			{Op: kadm.SetConfig, Name: "no.such", Value: kadm.StringPtr("1")},
			{Op: kadm.SetConfig, Name: "daybook.journals", Value: kadm.StringPtr("3")},
			{Op: kadm.SetConfig, Name: "daybook.durability", Value: kadm.StringPtr("replicated")},
		} {
			if err := alter(bad); !errors.Is(err, kerr.InvalidConfig) {
				t.Errorf("%s=%s: %v, want INVALID_CONFIG", bad.Name, *bad.Value, err)
			}
		}
	})
}

// A client that knows the old topic by its id must learn that it is gone.
func TestOldIDOfARecreatedTopicIsUnknown(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		adm := b.admin()
		c := b.client(kgo.DefaultProduceTopic("t"))
		b.topic("t", 1, nil)
		produce(t, c, numbered("t", 3)...)
		before, err := adm.ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := adm.DeleteTopic(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		b.topic("t", 1, nil)
		req := kmsg.NewPtrMetadataRequest()
		for _, name := range []*string{nil, kmsg.StringPtr("t")} {
			topic := kmsg.NewMetadataRequestTopic()
			if topic.Topic = name; name == nil {
				topic.TopicID = before["t"].ID
			}
			req.Topics = append(req.Topics, topic)
		}
		resp, err := req.RequestWith(t.Context(), b.client())
		if err != nil {
			t.Fatal(err)
		}
		if code := resp.Topics[0].ErrorCode; code != kerr.UnknownTopicID.Code {
			t.Errorf("the old id: %v, want UNKNOWN_TOPIC_ID", kerr.ErrorForCode(code))
		}
		if got := resp.Topics[1]; got.ErrorCode != 0 || got.TopicID == before["t"].ID {
			t.Errorf("the new topic has error %d and id %v", got.ErrorCode, got.TopicID)
		}
		eventually(t, "producing to the new topic", func() error {
			return b.client().ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("new")}).FirstErr()
		})
		got := consume(t, b.client(kgo.ConsumeTopics("t")), 1)
		if string(got[0].Value) != "new" || got[0].Offset != 0 {
			t.Errorf("the new topic holds %s at %d", got[0].Value, got[0].Offset)
		}
	})
}

func TestAdvertisedAddressIsTheConfiguredOneOrTheOneDialled(t *testing.T) {
	for _, c := range []struct{ advertised, want string }{{"kafka.example:9999", "kafka.example"}, {"", "127.0.0.1"}} {
		b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) { k.Advertised = c.advertised })
		conn := b.dial()
		req := kmsg.NewPtrMetadataRequest()
		if _, err := conn.Write(request(req, 1)); err != nil {
			t.Fatal(err)
		}
		resp := kmsg.NewPtrMetadataResponse()
		if err := resp.ReadFrom(readAnswer(t, conn)[4:]); err != nil {
			t.Fatal(err)
		}
		if got := resp.Brokers[0].Host; got != c.want {
			t.Errorf("advertised as %q the broker says %q, want %q", c.advertised, got, c.want)
		}
	}
}

func TestReplicatedTopicKeepsWhatItAnsweredOverAnOrderlyStop(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, map[string]string{"daybook.durability": "replicated"})
		produce(t, b.client(), numbered("t", 100)...)
		b.restart()
		consume(t, b.client(kgo.ConsumeTopics("t")), 100)
	})
}

func TestLongPollsDoNotKeepTheServerFromClosing(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		produce(t, b.client(), numbered("t", 1)...)
		c := b.client(kgo.ConsumeTopics("t"), kgo.FetchMaxWait(10*time.Minute))
		consume(t, c, 1)
		go c.PollFetches(t.Context()) // asks again at once, and waits
		start := time.Now()
		b.restart()
		if took := time.Since(start); took > 2*time.Minute { // tens of milliseconds, or what is left of ten minutes
			t.Errorf("closing and opening took %v", took)
		}
	})
}
