package kafka

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzRequests decodes arbitrary bytes as the requests that do not go through
// kmsg, and compares with what kmsg makes of them. The seeds run with every test.
func FuzzRequests(f *testing.F) {
	for version := int16(0); version <= 18; version++ {
		p := kmsg.NewPtrProduceRequest()
		p.Version, p.Acks = min(version, 13), -1
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.TopicID = "topic", [16]byte{1, 2}
		part := kmsg.NewProduceRequestTopicPartition()
		part.Records = []byte("records")
		topic.Partitions = append(topic.Partitions, part, kmsg.NewProduceRequestTopicPartition())
		p.Topics = append(p.Topics, topic)
		f.Add(int16(0), min(version, 13), p.AppendTo(nil))

		r := kmsg.NewPtrFetchRequest()
		r.Version, r.MaxBytes = version, 100
		ft := kmsg.NewFetchRequestTopic()
		ft.Topic, ft.TopicID = "topic", [16]byte{1, 2}
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.FetchOffset, fp.PartitionMaxBytes = 42, 7
		ft.Partitions = append(ft.Partitions, fp)
		r.Topics = append(r.Topics, ft)
		r.ForgottenTopics = append(r.ForgottenTopics, kmsg.FetchRequestForgottenTopic{Topic: "gone", Partitions: []int32{1, 2}})
		f.Add(int16(1), version, r.AppendTo(nil))
	}
	f.Add(int16(0), int16(9), []byte{0, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add(int16(1), int16(12), bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		a, known := apis[key]
		if !known || version < a.min || version > a.max {
			return
		}
		switch key {
		case int16(kmsg.Produce):
			checkProduce(t, version, body)
		case int16(kmsg.Fetch):
			checkFetch(t, version, body)
		}
	})
}

func checkProduce(t *testing.T, version int16, body []byte) {
	got, err := decodeProduce(version, body, "t")
	if err != nil {
		return
	}
	want := kmsg.NewPtrProduceRequest()
	want.Version = version
	if err := want.ReadFrom(body); err != nil {
		t.Fatalf("we read what kmsg cannot: %v", err)
	}
	if got.acks != want.Acks || got.timeoutMillis != want.TimeoutMillis || len(got.topics) != len(want.Topics) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i, topic := range got.topics {
		if topic.name != want.Topics[i].Topic || topic.id != want.Topics[i].TopicID || len(topic.partitions) != len(want.Topics[i].Partitions) {
			t.Fatalf("topic %d is %+v, want %+v", i, topic, want.Topics[i])
		}
		for j, p := range topic.partitions {
			w := want.Topics[i].Partitions[j]
			if p.index != w.Partition || !bytes.Equal(p.records, w.Records) {
				t.Fatalf("partition %d/%d is %+v, want %+v", i, j, p, w)
			}
		}
	}
}

func checkFetch(t *testing.T, version int16, body []byte) {
	got, err := decodeFetch(version, body)
	if err != nil {
		return
	}
	want := kmsg.NewPtrFetchRequest()
	want.Version = version
	if err := want.ReadFrom(body); err != nil {
		w := wire{b: body, flexible: version >= 12}
		if w.fetchRequest(version); w.tagged {
			return // kmsg looks into tagged fields, of whatever version they are
		}
		t.Fatalf("we read what kmsg cannot: %v", err)
	}
	if got.minBytes != int(want.MinBytes) || got.maxBytes != int(want.MaxBytes) || len(got.topics) != len(want.Topics) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if version >= 7 && (got.session != want.SessionID || got.sessionEpoch != want.SessionEpoch || len(got.forgotten) != len(want.ForgottenTopics)) {
		t.Fatalf("got session %+v, want %+v", got, want)
	}
	for i, topic := range got.forgotten {
		w := want.ForgottenTopics[i]
		if topic.name != w.Topic || topic.id != w.TopicID || len(topic.partitions) != len(w.Partitions) {
			t.Fatalf("forgotten topic %d is %+v, want %+v", i, topic, w)
		}
	}
	for i, topic := range got.topics {
		if topic.name != want.Topics[i].Topic || topic.id != want.Topics[i].TopicID || len(topic.partitions) != len(want.Topics[i].Partitions) {
			t.Fatalf("topic %d is %+v, want %+v", i, topic, want.Topics[i])
		}
		for j, p := range topic.partitions {
			w := want.Topics[i].Partitions[j]
			if p.index != w.Partition || p.offset != w.FetchOffset || p.maxBytes != int(w.PartitionMaxBytes) ||
				p.leaderEpoch != w.CurrentLeaderEpoch || p.lastEpoch != w.LastFetchedEpoch {
				t.Fatalf("partition %d/%d is %+v, want %+v", i, j, p, w)
			}
		}
	}
}
