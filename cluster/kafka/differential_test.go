package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/internal/services"
)

// TestAnswersAreThoseOfApacheKafka asks Apache Kafka and Daybook the same questions, one
// script after the other, and compares the answers field by field.
func TestAnswersAreThoseOfApacheKafka(t *testing.T) {
	apache := services.KafkaForTest(t, services.Options{Args: []string{
		"offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0",
	}})
	ours := newBroker(t, false)
	for _, script := range []struct {
		name string
		run  func(p *peer)
	}{
		{"topics", askTopics},
		{"configs", askConfigs},
		{"offsets by time", askTimes},
		{"fetches", askFetches},
		{"appends", askAppends},
		{"producers", askProducers},
		{"groups", askGroups},
		{"members", askMembers},
		{"transactions", askTransactions},
		{"fenced transactions", askFencing},
		{"transactions that count anew", askCountingAnew},
	} {
		t.Run(script.name, func(t *testing.T) {
			t.Parallel()
			prefix := strings.ReplaceAll(script.name, " ", "-") + "-"
			theirs := interview(t, apache.Addr, prefix, script.run)
			if diff := cmp.Diff(theirs, interview(t, ours.addr, prefix, script.run)); diff != "" {
				t.Errorf("Apache Kafka (-) and Daybook (+) differ:\n%s", diff)
			}
		})
	}
}

// peer is a broker that is asked.
type peer struct {
	t      *testing.T
	client *kgo.Client
	prefix string
	log    []string
	ids    map[string][16]byte
}

func interview(t *testing.T, addr, prefix string, script func(*peer)) []string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(20), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := &peer{t: t, client: client, prefix: prefix, ids: map[string][16]byte{}}
	for kind := range int8(2) { // groups, transactions: Apache Kafka makes their topics when asked
		eventually(t, "a coordinator", func() error {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorKey, req.CoordinatorType, req.CoordinatorKeys = prefix, kind, []string{prefix}
			resp, err := req.RequestWith(t.Context(), client.SeedBrokers()[0])
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(resp.Coordinators[0].ErrorCode)
		})
	}
	script(p)
	return p.log
}

// name is that of a topic or group of this script alone.
func (p *peer) name(s string) string { return p.prefix + s }

// ask sends a request and notes the answer under a title.
func ask[R kmsg.Response](p *peer, title string, request kmsg.Request, ignored ...string) R {
	p.t.Helper()
	return askOn[R](p, p.client, title, request, ignored...)
}

func askOn[R kmsg.Response](p *peer, client *kgo.Client, title string, request kmsg.Request, ignored ...string) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for {
		// To the one broker there is, as it is: the client would answer some itself.
		answer, err := client.SeedBrokers()[0].Request(ctx, request)
		if err != nil {
			p.t.Fatalf("%s: %v", title, err)
		}
		text, err := json.Marshal(answer)
		if err != nil {
			p.t.Fatal(err)
		}
		if !passing.Match(text) {
			p.note(title, text, ignored)
			return answer.(R)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// passing finds the errors that say no more than "not yet": a coordinator that loads,
// the markers of the last transaction under way, a topic just made.
var passing = regexp.MustCompile(fmt.Sprintf(`"ErrorCode":(%d|%d|%d|%d|%d)\b`, kerr.CoordinatorNotAvailable.Code,
	kerr.CoordinatorLoadInProgress.Code, kerr.NotCoordinator.Code, kerr.ConcurrentTransactions.Code, kerr.NotLeaderForPartition.Code))

// incidental are the fields in which two brokers may differ.
var incidental = []string{
	"Version", "ThrottleMillis", "UnknownTags", "ErrorMessage", "Host", "Port", "Rack", "TopicID", "ProducerID", "MemberID",
	"LeaderID", "Leader", "LeaderEpoch", "CurrentLeader", "Brokers", "NodeEndpoints", "ControllerID", "ClusterID", "NodeID", "SessionID",
	"LogAppendTime", "PreferredReadReplica", "Replicas", "ISR", "OfflineReplicas", "AuthorizedOperations", "DivergingEpoch", "SnapshotID",
	"ClientHost", "ClientID", "NumPartitions", "ReplicationFactor", "Configs", "ConfigErrorCode", "ErrorRecords",
}

// note writes an answer down: one line a field that says something.
func (p *peer) note(title string, answer []byte, ignored []string) {
	p.t.Helper()
	var fields any
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		p.t.Fatal(err)
	}
	p.write(title, fields, append(slices.Clone(incidental), ignored...))
}

func (p *peer) write(path string, v any, ignored []string) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			if !slices.Contains(ignored, k) {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			p.write(path+"."+k, v[k], ignored)
		}
	case []any:
		for i, e := range v {
			p.write(fmt.Sprintf("%s[%d]", path, i), e, ignored)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil && strings.HasSuffix(path, "ErrorCode") {
			p.say(path, errorName(int16(n)))
			return
		}
		p.say(path, v.String())
	case string:
		if strings.HasSuffix(path, ".RecordBatches") {
			p.say(path, batchesIn(v))
			return
		}
		p.say(path, strings.ReplaceAll(v, p.prefix, ""))
	case nil:
	default:
		p.say(path, fmt.Sprint(v))
	}
}

func (p *peer) say(path, value string) { p.log = append(p.log, path+" = "+value) }

func errorName(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return "none"
}

// batchesIn names the batches in the base64 that JSON makes of bytes.
func batchesIn(text string) string {
	var raw []byte
	if err := json.Unmarshal([]byte(`"`+text+`"`), &raw); err != nil {
		return err.Error()
	}
	var all []string
	for len(raw) > 61 {
		size := int(binary.BigEndian.Uint32(raw[8:])) + 12
		if size > len(raw) {
			all = append(all, "cut off")
			break
		}
		base, attributes := binary.BigEndian.Uint64(raw), binary.BigEndian.Uint16(raw[21:])
		all = append(all, fmt.Sprintf("%d+%d attributes %d", base, binary.BigEndian.Uint32(raw[57:]), attributes))
		raw = raw[size:]
	}
	return strings.Join(all, ", ")
}

// topic makes a topic whose segments do not end by themselves: a fetch of Apache Kafka
// does not go beyond one.
func (p *peer) topic(name string, partitions int32, configs ...string) string {
	p.t.Helper()
	configs = append([]string{"segment.ms", "9223372036854775807"}, configs...)
	if !slices.Contains(configs, "retention.ms") {
		configs = append(configs, "retention.ms", "-1")
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = p.name(name), partitions, 1
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		topic.Configs = append(topic.Configs, c)
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30_000
	ask[*kmsg.CreateTopicsResponse](p, "creating "+name, req)
	p.find(topic.Topic)
	return topic.Topic
}

// find waits until the topic can be used, and notes its id.
func (p *peer) find(topic string) {
	p.t.Helper()
	eventually(p.t, "a leader of "+topic, func() error {
		req := kmsg.NewPtrMetadataRequest()
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topic
		req.Topics = append(req.Topics, t)
		resp, err := req.RequestWith(p.t.Context(), p.client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
			return err
		}
		p.ids[topic] = resp.Topics[0].TopicID
		return nil
	})
}

// append sends a batch as it is and notes the answer.
func (p *peer) append(title, topic string, partition int32, txn *string, raw []byte) *kmsg.ProduceResponse {
	p.t.Helper()
	return p.appendOn(p.client, title, topic, partition, txn, raw)
}

func (p *peer) appendOn(client *kgo.Client, title, topic string, partition int32, txn *string, raw []byte) *kmsg.ProduceResponse {
	p.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = txn, -1, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, p.ids[topic]
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, raw
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	return askOn[*kmsg.ProduceResponse](p, client, title, req)
}

// fetch asks for one partition without a session.
func (p *peer) fetch(title, topic string, partition int32, offset int64, maxBytes int32, change ...func(*kmsg.FetchRequest)) {
	p.t.Helper()
	req := p.fetchRequest(topic, partition, offset, maxBytes)
	for _, f := range change {
		f(req)
	}
	ask[*kmsg.FetchResponse](p, title, req)
}

func (p *peer) fetchRequest(topic string, partition int32, offset int64, maxBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 0, 0, 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, p.ids[topic]
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = partition, offset, maxBytes, -1
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	return req
}
