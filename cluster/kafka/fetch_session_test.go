package kafka_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// sessionFetch sends a fetch of a session, of the given partitions' first offsets.
type sessionFetch struct {
	b        *broker
	c        *kgo.Client
	id       int32
	epoch    int32
	byName   bool
	fetch    map[string][]int32
	offsets  map[string]int64
	forget   map[string][]int32
	topicIDs map[string][16]byte // instead of what they are now
}

func (f sessionFetch) do(t *testing.T) *kmsg.FetchResponse {
	t.Helper()
	c := f.c
	if c == nil && f.byName {
		c = f.b.client(kgo.MaxVersions(kversion.V2_8_0()))
	} else if c == nil {
		c = f.b.client()
	}
	topicID := func(name string) [16]byte {
		if id, ok := f.topicIDs[name]; ok {
			return id
		}
		return f.b.topicID(name)
	}
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxBytes, req.SessionID, req.SessionEpoch = -1, 1<<20, f.id, f.epoch
	for name, partitions := range f.fetch {
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = name, topicID(name)
		for _, i := range partitions {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.PartitionMaxBytes = i, -1, -1, 1<<20
			p.FetchOffset = f.offsets[name]
			topic.Partitions = append(topic.Partitions, p)
		}
		req.Topics = append(req.Topics, topic)
	}
	for name, partitions := range f.forget {
		req.ForgottenTopics = append(req.ForgottenTopics, kmsg.FetchRequestForgottenTopic{Topic: name, TopicID: topicID(name), Partitions: partitions})
	}
	resp, err := req.RequestWith(t.Context(), c)
	if err != nil {
		t.Fatalf("fetching: %v", err)
	}
	return resp
}

// answered lists the partitions of an answer and what they have.
func answered(resp *kmsg.FetchResponse) string {
	var list []string
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			what := fmt.Sprintf("%d:%d", p.Partition, p.HighWatermark)
			if len(p.RecordBatches) > 0 {
				what += "+"
			}
			if p.ErrorCode != 0 {
				what = fmt.Sprintf("%d:%s", p.Partition, kerr.TypedErrorForCode(p.ErrorCode).Message)
			}
			list = append(list, what)
		}
	}
	return fmt.Sprint(list)
}

func put(t *testing.T, b *broker, topic string, partition int32) {
	t.Helper()
	produce(t, b.client(kgo.RecordPartitioner(kgo.ManualPartitioner())), &kgo.Record{Topic: topic, Partition: partition, Value: []byte("v")})
}

func TestFetchSessionAnswersWhatChanged(t *testing.T) {
	for _, byName := range []bool{true, false} {
		t.Run(fmt.Sprintf("by name %v", byName), func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, false)
			b.topic("t", 3, nil)
			f := sessionFetch{b: b, byName: byName, fetch: map[string][]int32{"t": {0, 1, 2}}}
			first := f.do(t)
			if got := answered(first); first.SessionID == 0 || got != "[0:0 1:0 2:0]" {
				t.Fatalf("full fetch: session %d, %s", first.SessionID, got)
			}
			step := func(what, want string, change func(*sessionFetch)) {
				t.Helper()
				f.fetch, f.forget, f.offsets = nil, nil, nil
				f.id, f.epoch = first.SessionID, f.epoch+1
				change(&f)
				resp := f.do(t)
				if got := answered(resp); resp.ErrorCode != 0 || resp.SessionID != first.SessionID || got != want {
					t.Errorf("%s: %v, session %d, %s; want %s", what, kerr.ErrorForCode(resp.ErrorCode), resp.SessionID, got, want)
				}
			}
			none := func(*sessionFetch) {}
			step("nothing new", "[]", none)
			put(t, b, "t", 1)
			step("a record", "[1:1+]", none)
			step("the same record again, not fetched on", "[1:1+]", none)
			step("fetched on", "[]", func(f *sessionFetch) {
				f.fetch, f.offsets = map[string][]int32{"t": {1}}, map[string]int64{"t": 1}
			})
			put(t, b, "t", 1)
			put(t, b, "t", 0)
			step("two, the one that was served last", "[0:1+ 1:2+]", none)
			step("forgotten", "[1:2+]", func(f *sessionFetch) { f.forget = map[string][]int32{"t": {0}} })
			step("out of range", "[1:OFFSET_OUT_OF_RANGE]", func(f *sessionFetch) {
				f.fetch, f.offsets = map[string][]int32{"t": {1}}, map[string]int64{"t": 99}
			})
			step("back in range", "[1:2]", func(f *sessionFetch) {
				f.fetch, f.offsets = map[string][]int32{"t": {1}}, map[string]int64{"t": 2}
			})
			put(t, b, "t", 0)
			step("what was forgotten stays so", "[]", none)
			// The last partition takes the session along.
			f.fetch, f.offsets, f.epoch = nil, nil, f.epoch+1
			f.forget = map[string][]int32{"t": {1, 2}}
			if resp := f.do(t); resp.SessionID != 0 || resp.ErrorCode != 0 || len(resp.Topics) != 0 {
				t.Errorf("forgetting all: session %d, %v, %s", resp.SessionID, kerr.ErrorForCode(resp.ErrorCode), answered(resp))
			}
			f.forget, f.epoch = nil, f.epoch+1
			if resp := f.do(t); resp.ErrorCode != kerr.FetchSessionIDNotFound.Code {
				t.Errorf("fetching on: %v, want FETCH_SESSION_ID_NOT_FOUND", kerr.ErrorForCode(resp.ErrorCode))
			}
		})
	}
}

func TestFetchSessionEpochsAreKafkas(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		begin := func(byName bool) sessionFetch {
			f := sessionFetch{b: b, byName: byName, fetch: map[string][]int32{"t": {0}}}
			f.id = f.do(t).SessionID
			f.fetch = nil
			return f
		}
		code := func(f sessionFetch, epoch int32) (string, int32) {
			f.epoch = epoch
			resp := f.do(t)
			if resp.ErrorCode == 0 {
				return "", resp.SessionID
			}
			return kerr.TypedErrorForCode(resp.ErrorCode).Message, resp.SessionID
		}
		f := begin(false)
		for _, c := range []struct {
			epoch int32
			want  string
		}{
			{2, "INVALID_FETCH_SESSION_EPOCH"}, {1, ""}, {1, "INVALID_FETCH_SESSION_EPOCH"}, {2, ""},
			{-1, ""}, // the client ends it
			{3, "FETCH_SESSION_ID_NOT_FOUND"},
		} {
			if got, _ := code(f, c.epoch); got != c.want {
				t.Errorf("epoch %d: %q, want %q", c.epoch, got, c.want)
			}
		}
		if got, _ := code(sessionFetch{b: b, id: 12345}, 1); got != "FETCH_SESSION_ID_NOT_FOUND" {
			t.Errorf("unknown session: %q", got)
		}
		// A full fetch of the same client takes the place of its former session.
		f = begin(false)
		f.fetch = map[string][]int32{"t": {0}}
		if got, id := code(f, 0); got != "" || id == 0 || id == f.id {
			t.Errorf("new session: %q, %d after %d", got, id, f.id)
		}
		if got, _ := code(f, 1); got != "FETCH_SESSION_ID_NOT_FOUND" {
			t.Errorf("former session: %q", got)
		}
		named := begin(true)
		named.byName = false
		if got, _ := code(named, 1); got != "FETCH_SESSION_TOPIC_ID_ERROR" {
			t.Errorf("a session of names, used with ids: %q", got)
		}
	})
}

// A topic was deleted and made anew, and clients took the new one for the old.
func TestRecreatedTopicIsAnotherOne(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 1, nil)
		f := sessionFetch{b: b, fetch: map[string][]int32{"t": {0}}}
		old := b.topicID("t")
		f.id = f.do(t).SessionID
		if _, err := b.admin().DeleteTopics(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		f.fetch, f.epoch = nil, 1
		if got := answered(f.do(t)); got != "[0:UNKNOWN_TOPIC_OR_PARTITION]" {
			t.Errorf("the session's partition is %s after the deletion", got)
		}
		b.topic("t", 1, nil)
		f.epoch++
		if got := answered(f.do(t)); got != "[0:INCONSISTENT_TOPIC_ID]" {
			t.Errorf("the session's partition is %s after the name was given anew", got)
		}
		again := sessionFetch{b: b, epoch: -1, fetch: map[string][]int32{"t": {0}}, topicIDs: map[string][16]byte{"t": old}}
		if got := answered(again.do(t)); got != "[0:UNKNOWN_TOPIC_ID]" {
			t.Errorf("a fetch of the old id gave %s", got)
		}
		if got := answered(sessionFetch{b: b, epoch: -1, fetch: map[string][]int32{"t": {0}}}.do(t)); got != "[0:0]" {
			t.Errorf("a fetch of the new id gave %s", got)
		}
		req := kmsg.NewPtrProduceRequest()
		req.Acks = -1
		topic, p := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		topic.TopicID, p.Records = old, plainBatch("a")
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		resp, err := req.RequestWith(t.Context(), b.client())
		if err != nil {
			t.Fatal(err)
		}
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != kerr.UnknownTopicID.Code || resp.Topics[0].TopicID != old {
			t.Errorf("producing to the old id: %v, want UNKNOWN_TOPIC_ID", kerr.ErrorForCode(code))
		}
	})
}
