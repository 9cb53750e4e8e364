package kafka_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A topic that is created with an assignment lies as it says.
func TestATopicLiesWhereItIsAssigned(t *testing.T) {
	ps := newPeers(t, 3)
	cl := ps.client()
	create := func(name string, replicas ...[]int32) int16 {
		t.Helper()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
		for p, r := range replicas {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = int32(p), r
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
		}
		slices.Reverse(topic.ReplicaAssignment) // in any order
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30_000
		resp, err := req.RequestWith(t.Context(), cl)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Topics[0].ErrorCode
	}
	for name, want := range map[string][][]int32{
		"apart": {{3, 1}, {2, 3}, {1, 2}},
		"alike": {{2, 3, 1}, {2, 3, 1}},
		"one":   {{3}},
	} {
		if code := create(name, want...); code != 0 {
			t.Fatalf("%s: %v", name, kerr.ErrorForCode(code))
		}
		for p, replicas := range want {
			part, err := ps.Node(0).Partition(name, int32(p))
			if err != nil {
				t.Fatal(err)
			}
			if got := part.Replicas(); !slices.Equal(got, replicas) {
				t.Errorf("%s/%d lies on %v, want %v", name, p, got, replicas)
			}
			ps.leader(name, int32(p))
		}
	}
	for name, bad := range map[string][][]int32{
		"unknown": {{1, 4}}, "twice": {{1, 1}}, "uneven": {{1, 2}, {3}}, "none": {{}},
	} {
		if code := create(name, bad...); code != kerr.InvalidReplicaAssignment.Code {
			t.Errorf("%s: %v, want INVALID_REPLICA_ASSIGNMENT", name, kerr.ErrorForCode(code))
		}
	}
}

// Whoever tries names of users sees the same of one that does not exist on all nodes, as of one that does.
func TestAnUnknownUserLooksTheSameOnAllNodes(t *testing.T) {
	ps := newPeers(t, 2)
	first := ""
	for i, f := range ps.faces {
		cl, err := kgo.NewClient(kgo.SeedBrokers(f.scram))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		broker := cl.SeedBrokers()[0]
		hello := kmsg.NewPtrSASLHandshakeRequest()
		hello.Mechanism = "SCRAM-SHA-512"
		if _, err := broker.Request(t.Context(), hello); err != nil {
			t.Fatal(err)
		}
		login := kmsg.NewPtrSASLAuthenticateRequest()
		login.SASLAuthBytes = []byte("n,,n=nobody,r=nonce")
		got, err := broker.Request(t.Context(), login)
		if err != nil {
			t.Fatal(err)
		}
		resp := got.(*kmsg.SASLAuthenticateResponse)
		_, salt, found := strings.Cut(string(resp.SASLAuthBytes), ",s=")
		if !found || resp.ErrorCode != 0 {
			t.Fatalf("node %d answers %q, %v", i, resp.SASLAuthBytes, kerr.ErrorForCode(resp.ErrorCode))
		}
		if i == 0 {
			first = salt
		} else if salt != first {
			t.Errorf("the first node answers with salt %s, another one with %s", first, salt)
		}
	}
}
