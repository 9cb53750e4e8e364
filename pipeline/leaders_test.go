package pipeline_test

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/pipeline"
)

// withoutLeader makes the journal say so many times that a stream has no leader yet.
func withoutLeader(t *testing.T, c *kfake.Cluster, stream string, times int64) (left *atomic.Int64) {
	t.Helper()
	topics, err := kadm.NewClient(rawClient(t, c)).ListTopics(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	id := topics[stream].ID
	host, text, err := net.SplitHostPort(c.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	left = new(atomic.Int64)
	left.Store(times)
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked := req.(*kmsg.MetadataRequest).Topics
		if len(asked) != 1 || asked[0].Topic == nil || *asked[0].Topic != stream || left.Add(-1) < 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		broker := kmsg.NewMetadataResponseBroker()
		broker.Host, broker.Port = host, int32(port)
		p := kmsg.NewMetadataResponseTopicPartition()
		p.ErrorCode, p.Leader = kerr.LeaderNotAvailable.Code, -1
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.TopicID, topic.Partitions = &stream, id, append(topic.Partitions, p)
		resp.Brokers, resp.Topics = append(resp.Brokers, broker), append(resp.Topics, topic)
		return resp, nil, true
	})
	return left
}

func TestAStreamThatWasJustMadeIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fill(t, c, "numbers", 1, number(0))
	left := withoutLeader(t, c, "numbers", 5)
	j := open(t, c)
	info, err := j.Ensure(t.Context(), "numbers", 1, 1)
	if err != nil || info.Partitions != 1 {
		t.Fatalf("got %+v, %v", info, err)
	}
	if n := left.Load(); n > 0 {
		t.Errorf("it was taken for ready when it still had no leader: %d answers were not waited for", n)
	}
	ends, err := j.Ends(t.Context(), "numbers")
	if err != nil || ends[pipeline.Partition{Stream: "numbers"}] != 1 {
		t.Errorf("its ends are %v, %v", ends, err)
	}
}
