package kafka_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A stream that one node has made is there for who changes it through another one, which hears of it a moment later.
func TestAStreamIsThereOnAllNodesOnceItIsMade(t *testing.T) {
	ps := newPeers(t, 3)
	c := ps.client()
	nodes := ps.Nodes()
	for i := range 60 {
		name := fmt.Sprint("s", i)
		made := kmsg.NewPtrCreateTopicsRequest()
		made.TimeoutMillis = 30_000
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		made.Topics = append(made.Topics, topic)
		at, other := int(nodes[i%3].ID()), int(nodes[(i+1)%3].ID())
		if got := requestAt(t, c.Broker(at), made).(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode != 0 {
			t.Fatalf("node %d makes %s: %v", at, name, kerr.ErrorForCode(got.ErrorCode))
		}
		gone := kmsg.NewPtrDeleteTopicsRequest()
		gone.TimeoutMillis = 30_000
		gone.TopicNames = []string{name}
		asked := kmsg.NewDeleteTopicsRequestTopic()
		asked.Topic = kmsg.StringPtr(name)
		gone.Topics = append(gone.Topics, asked)
		if got := requestAt(t, c.Broker(other), gone).(*kmsg.DeleteTopicsResponse).Topics[0]; got.ErrorCode != 0 {
			t.Fatalf("node %d deletes %s, which node %d had made: %v", other, name, at, kerr.ErrorForCode(got.ErrorCode))
		}
	}
}
