package kafka

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// encodeFetch writes an answer with one partition and reads it as a client does.
func encodeFetch(t *testing.T, version int16, f fetched, brokers []broker) *kmsg.FetchResponse {
	t.Helper()
	e := &fetchEncoder{version: version, flexible: apis[int16(kmsg.Fetch)].flexible(version)}
	e.int32(0)
	e.int16(0)
	e.int32(7)
	e.length(1)
	e.topic(fetchTopic{name: "t", id: metadata.StreamID{1}})
	e.length(1)
	e.partition(&f)
	e.tags()
	if brokers == nil {
		e.tags()
	} else {
		e.endpoints(brokers)
	}
	raw := e.b
	if pieces := e.buffers(); pieces != nil {
		raw = nil
		for _, p := range pieces {
			raw = append(raw, p...)
		}
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = version
	if err := resp.ReadFrom(raw); err != nil {
		t.Fatalf("version %d: %v", version, err)
	}
	return resp
}

func TestAFetchSaysWhoLeads(t *testing.T) {
	rack := "here"
	for version := int16(12); version <= apis[int16(kmsg.Fetch)].max; version++ {
		f := fetched{
			index: 3, err: cluster.ErrNotLeader, leader: leader{2, 9}, diverging: &divergence{4, 55},
			data: cluster.Fetched{Pieces: net.Buffers{[]byte("abc")}, Bytes: 3},
		}
		brokers := []broker{{1, "a", 9092, nil}, {2, "b.example", 9093, &rack}}
		if version < 16 {
			brokers = nil
		}
		resp := encodeFetch(t, version, f, brokers)
		p := resp.Topics[0].Partitions[0]
		if p.CurrentLeader.LeaderID != 2 || p.CurrentLeader.LeaderEpoch != 9 || p.DivergingEpoch.Epoch != 4 || p.DivergingEpoch.EndOffset != 55 {
			t.Errorf("version %d: leader %+v, diverging %+v", version, p.CurrentLeader, p.DivergingEpoch)
		}
		if string(p.RecordBatches) != "abc" || p.PreferredReadReplica != -1 || p.ErrorCode != 6 {
			t.Errorf("version %d: got %q, preferred %d, error %d", version, p.RecordBatches, p.PreferredReadReplica, p.ErrorCode)
		}
		var got []broker
		for _, b := range resp.Brokers {
			got = append(got, broker{b.NodeID, b.Host, b.Port, b.Rack})
		}
		if d := cmp.Diff(brokers, got, cmp.AllowUnexported(broker{})); d != "" {
			t.Errorf("version %d: %s", version, d)
		}
	}
}

func TestAFetchNamesTheReplicaToReadFrom(t *testing.T) {
	for version := int16(11); version <= apis[int16(kmsg.Fetch)].max; version++ {
		resp := encodeFetch(t, version, fetched{leader: noLeader, readFrom: 4, data: cluster.Fetched{Bounds: cluster.Bounds{HighWatermark: 8}}}, nil)
		p := resp.Topics[0].Partitions[0]
		if p.PreferredReadReplica != 4 || p.ErrorCode != 0 || p.HighWatermark != 8 || len(p.RecordBatches) != 0 {
			t.Errorf("version %d: %+v", version, p)
		}
		if p.CurrentLeader.LeaderID != -1 || len(resp.Brokers) != 0 {
			t.Errorf("version %d: leader %+v, brokers %+v, want none", version, p.CurrentLeader, resp.Brokers)
		}
	}
}
