package kafka_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func askTopics(p *peer) {
	topic := p.topic("t", 2)
	create := func(title, name string, partitions int32, replicas int16, configs ...string) {
		req := kmsg.NewPtrCreateTopicsRequest()
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
		for i := 0; i < len(configs); i += 2 {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = configs[i], &configs[i+1]
			t.Configs = append(t.Configs, c)
		}
		req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
		ask[*kmsg.CreateTopicsResponse](p, title, req)
	}
	create("a topic that is there", topic, 1, 1)
	create("no partitions", p.name("none"), 0, 1)
	create("too many replicas", p.name("replicas"), 1, 3)
	create("no replicas", p.name("replicas"), 1, 0)
	create("a name with a space", p.name("a b"), 1, 1)
	create("an empty name", "", 1, 1)
	create("two dots", "..", 1, 1)
	create("a name that is too long", p.name(strings.Repeat("x", 250)), 1, 1)
	create("an unknown config", p.name("config"), 1, 1, "no.such.config", "1")
	create("a config that is no number", p.name("config"), 1, 1, "retention.ms", "soon")
	create("a config out of range", p.name("config"), 1, 1, "retention.ms", "-5")

	twice := kmsg.NewPtrCreateTopicsRequest()
	for range 2 {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = p.name("twice"), 1, 1
		twice.Topics = append(twice.Topics, t)
	}
	twice.TimeoutMillis = 30_000
	ask[*kmsg.CreateTopicsResponse](p, "one topic twice", twice)

	only := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = p.name("only"), 1, 1
	only.Topics, only.ValidateOnly, only.TimeoutMillis = append(only.Topics, t), true, 30_000
	ask[*kmsg.CreateTopicsResponse](p, "only validating", only)

	metadata := func(title, name string) {
		req := kmsg.NewPtrMetadataRequest()
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		req.Topics = append(req.Topics, t)
		ask[*kmsg.MetadataResponse](p, title, req)
	}
	metadata("metadata of one that was only validated", p.name("only"))
	metadata("metadata of a topic", topic)
	metadata("metadata of a bad name", p.name("a b"))

	grow := func(title, name string, n int32) {
		req := kmsg.NewPtrCreatePartitionsRequest()
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, n
		req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
		ask[*kmsg.CreatePartitionsResponse](p, title, req)
	}
	grow("fewer partitions", topic, 1)
	grow("as many partitions", topic, 2)
	grow("more partitions", topic, 4)
	grow("partitions of no topic", p.name("none"), 4)

	remove := func(title, name string) {
		req := kmsg.NewPtrDeleteTopicsRequest()
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &name
		req.Topics, req.TopicNames, req.TimeoutMillis = append(req.Topics, t), append(req.TopicNames, name), 30_000
		ask[*kmsg.DeleteTopicsResponse](p, title, req)
	}
	remove("removing no topic", p.name("none"))
	remove("removing a topic", topic)
}

func askConfigs(p *peer) {
	topic := p.topic("t", 1, "retention.ms", "86400000", "max.message.bytes", "2000000")
	describe := func(title, name string, keys ...string) {
		for _, key := range keys {
			req := kmsg.NewPtrDescribeConfigsRequest()
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, name, []string{key}
			req.Resources = append(req.Resources, r)
			resp := ask[*kmsg.DescribeConfigsResponse](p, title+" "+key, req)
			for _, r := range resp.Resources {
				for _, c := range r.Configs {
					value := "null"
					if c.Value != nil {
						value = *c.Value
					}
					p.say(title+" "+c.Name, fmt.Sprintf("%s, read-only %v, sensitive %v", value, c.ReadOnly, c.IsSensitive))
				}
			}
		}
	}
	describe("config", topic, "retention.ms", "retention.bytes", "cleanup.policy", "max.message.bytes", "message.timestamp.type", "min.insync.replicas", "no.such.config")
	describe("config of no topic", p.name("none"), "retention.ms")

	alter := func(title, name, key string, op kmsg.IncrementalAlterConfigOp, value string) {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = key, op, &value
		r.Configs = append(r.Configs, c)
		req.Resources = append(req.Resources, r)
		ask[*kmsg.IncrementalAlterConfigsResponse](p, title, req)
	}
	alter("setting", topic, "retention.bytes", kmsg.IncrementalAlterConfigOpSet, "1000000")
	alter("appending to a list", topic, "cleanup.policy", kmsg.IncrementalAlterConfigOpAppend, "compact")
	alter("appending to a number", topic, "retention.ms", kmsg.IncrementalAlterConfigOpAppend, "1")
	alter("taking back", topic, "retention.ms", kmsg.IncrementalAlterConfigOpDelete, "")
	alter("an unknown config", topic, "no.such.config", kmsg.IncrementalAlterConfigOpSet, "1")
	alter("a bad value", topic, "retention.ms", kmsg.IncrementalAlterConfigOpSet, "soon")
	alter("of no topic", p.name("none"), "retention.ms", kmsg.IncrementalAlterConfigOpSet, "1")
	describe("config afterwards", topic, "retention.ms", "retention.bytes", "cleanup.policy")
}

// offsetAt asks ListOffsets.
func (p *peer) offsetAt(title, topic string, partition int32, at int64, isolation int8, ignored ...string) {
	p.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp, part.CurrentLeaderEpoch = partition, at, -1
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	ask[*kmsg.ListOffsetsResponse](p, title, req, ignored...)
}

func askTimes(p *peer) {
	empty := p.topic("empty", 1)
	for _, at := range []int64{-1, -2, -3, 0, 5} {
		p.offsetAt(fmt.Sprintf("empty at %d", at), empty, 0, at, 0)
	}
	p.offsetAt("no partition", empty, 7, -1, 0)
	p.offsetAt("no topic", p.name("none"), 0, -1, 0)

	for _, codec := range []struct {
		name string
		kgo.CompressionCodec
	}{{"plain", kgo.NoCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}} {
		topic := p.topic(codec.name, 1)
		writer, err := kgo.NewClient(append(p.client.Opts(), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec.CompressionCodec), kgo.ProducerLinger(50*time.Millisecond))...)
		if err != nil {
			p.t.Fatal(err)
		}
		var records []*kgo.Record
		for _, ms := range []int64{2000, 4000, 6000, 8000} {
			records = append(records, &kgo.Record{Timestamp: epoch(ms), Value: []byte("some value that repeats, repeats, repeats")})
		}
		produce(p.t, writer, records...)
		records = nil
		for _, ms := range []int64{9000, 3000, 12000, 7000, 12000} { // in no order, the greatest twice
			records = append(records, &kgo.Record{Timestamp: epoch(ms), Value: []byte("some value that repeats, repeats, repeats")})
		}
		produce(p.t, writer, records...)
		writer.Close()
		for _, at := range []int64{-1, -2, -3, 0, 1999, 2000, 3000, 5000, 8000, 8001, 9000, 10000, 12000, 12001} {
			p.offsetAt(fmt.Sprintf("%s at %d", codec.name, at), topic, 0, at, 0)
		}
	}
}

func askFetches(p *peer) {
	topic := p.topic("t", 1)
	for _, values := range [][]string{{"a", "b", "c"}, {"d"}, {"e", "f"}} {
		p.append("appending", topic, 0, nil, plainBatch(values...))
	}
	for offset := int64(-1); offset <= 7; offset++ {
		p.fetch(fmt.Sprintf("from %d", offset), topic, 0, offset, 1<<20)
		p.fetch(fmt.Sprintf("one byte from %d", offset), topic, 0, offset, 1)
	}
	p.fetch("exactly the first batch", topic, 0, 0, int32(len(plainBatch("a", "b", "c"))))
	p.fetch("a byte more", topic, 0, 0, int32(len(plainBatch("a", "b", "c")))+1)
	p.fetch("no partition", topic, 3, 0, 1<<20)
	p.fetch("a total of one byte", topic, 0, 0, 1<<20, func(r *kmsg.FetchRequest) { r.MaxBytes = 1 })
	p.fetch("only what is committed", topic, 0, 0, 1<<20, func(r *kmsg.FetchRequest) { r.IsolationLevel = 1 })
	p.fetch("of a later leader", topic, 0, 0, 1<<20, func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].CurrentLeaderEpoch = 1000 })
	p.fetch("of a topic id that is not there", topic, 0, 0, 1<<20, func(r *kmsg.FetchRequest) { r.Topics[0].TopicID = [16]byte{1, 2, 3} })
	p.fetch("a session that is not there", topic, 0, 0, 1<<20, func(r *kmsg.FetchRequest) { r.SessionID, r.SessionEpoch = 12345, 7 })

	cut := func(title string, partition int32, offset int64) {
		req := kmsg.NewPtrDeleteRecordsRequest()
		t := kmsg.NewDeleteRecordsRequestTopic()
		t.Topic = topic
		part := kmsg.NewDeleteRecordsRequestTopicPartition()
		part.Partition, part.Offset = partition, offset
		t.Partitions, req.TimeoutMillis = append(t.Partitions, part), 30_000
		req.Topics = append(req.Topics, t)
		ask[*kmsg.DeleteRecordsResponse](p, title, req)
	}
	cut("deleting in the middle of a batch", 0, 2)
	p.fetch("below the start", topic, 0, 0, 1<<20)
	p.fetch("at the start", topic, 0, 2, 1<<20)
	p.offsetAt("earliest", topic, 0, -2, 0)
	p.offsetAt("by time", topic, 0, 0, 0)
	cut("deleting less", 0, 1)
	cut("deleting beyond the end", 0, 100)
	cut("deleting of no partition", 5, 1)
	cut("deleting all", 0, -1)
	p.fetch("at the end", topic, 0, 6, 1<<20)
	p.fetch("below the end", topic, 0, 5, 1<<20)
	p.offsetAt("earliest of nothing", topic, 0, -2, 0)
	p.append("appending behind nothing", topic, 0, nil, plainBatch("g"))

	epochs := func(title string, epoch int32) {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		t := kmsg.NewOffsetForLeaderEpochRequestTopic()
		t.Topic = topic
		part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		part.CurrentLeaderEpoch, part.LeaderEpoch = -1, epoch
		t.Partitions = append(t.Partitions, part)
		req.ReplicaID, req.Topics = -2, append(req.Topics, t)
		ask[*kmsg.OffsetForLeaderEpochResponse](p, title, req)
	}
	epochs("end of an epoch to come", 1000)
	epochs("end of no epoch", -1)
}

func askAppends(p *peer) {
	topic := p.topic("t", 1, "max.message.bytes", "1000")
	damaged := plainBatch("a")
	damaged[len(damaged)-1] ^= 1
	p.append("a wrong checksum", topic, 0, nil, damaged)
	cut := plainBatch("abcdef")
	p.append("a batch cut off", topic, 0, nil, cut[:len(cut)-3])
	old := plainBatch("a")
	old[16] = 1
	p.append("an old magic", topic, 0, nil, old)
	count := plainBatch("a", "b")
	count[60] = 3
	seal(count)
	p.append("a wrong count", topic, 0, nil, count)
	p.append("two batches", topic, 0, nil, append(plainBatch("a"), plainBatch("b")...))
	p.append("too large", topic, 0, nil, plainBatch(strings.Repeat("x", 1500)))
	p.append("no partition", topic, 9, nil, plainBatch("a"))
	p.append("a control batch", topic, 0, nil, batch{attributes: 32, producer: -1, epoch: -1, sequence: -1, values: []string{"a"}}.encode())
	p.append("a transaction's batch without a transaction", topic, 0, nil, batch{attributes: 16, producer: -1, epoch: -1, sequence: -1, values: []string{"a"}}.encode())
	p.append("well", topic, 0, nil, plainBatch("a"))

	acks := kmsg.NewPtrProduceRequest()
	acks.Acks, acks.TimeoutMillis = 2, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, p.ids[topic]
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = plainBatch("a")
	t.Partitions = append(t.Partitions, part)
	acks.Topics = append(acks.Topics, t)
	ask[*kmsg.ProduceResponse](p, "two acks", acks)

	stamped := p.topic("stamped", 1, "message.timestamp.type", "LogAppendTime")
	p.append("with the broker's time", stamped, 0, nil, batch{producer: -1, epoch: -1, sequence: -1, values: []string{"a", "b"}, timestamp: 5}.encode())
	p.fetch("with the broker's time", stamped, 0, 0, 1<<20)

	bounded := p.topic("bounded", 1, "message.timestamp.after.max.ms", "60000", "message.timestamp.before.max.ms", "60000")
	at := func(d time.Duration) []byte {
		return batch{producer: -1, epoch: -1, sequence: -1, values: []string{"a"}, timestamp: time.Now().Add(d).UnixMilli()}.encode()
	}
	p.append("far ahead", bounded, 0, nil, at(time.Hour))
	p.append("long ago", bounded, 0, nil, at(-time.Hour))
	p.append("now", bounded, 0, nil, at(0))
	p.fetch("what was stored", topic, 0, 0, 1<<20)
}
