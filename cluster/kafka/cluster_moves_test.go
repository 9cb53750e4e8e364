package kafka_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A partition moves to other nodes while it is produced to: nothing is lost, doubled or out
// of order, and what is not to have it any more has not.
func TestAPartitionMovesWhileItIsProducedTo(t *testing.T) {
	ps := newPeers(t, 4)
	adm := kadm.NewClient(ps.client())
	if _, err := adm.CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	ps.leader("t", 0)
	had := replicasOf(t, ps)
	var spare int32
	for _, n := range ps.Nodes() {
		if !slices.Contains(had, n.ID()) {
			spare = n.ID()
		}
	}
	to := []int32{spare, had[1], had[2]} // what should lead goes
	const records = 5000
	p := ps.client(kgo.DefaultProduceTopic("t"), kgo.ProducerLinger(0))
	var sent sync.WaitGroup
	for i := range records {
		if i == records/4 {
			var req kadm.AlterPartitionAssignmentsReq
			req.Assign("t", 0, to)
			if moved, err := adm.AlterPartitionAssignments(t.Context(), req); err != nil || moved.Error() != nil {
				t.Fatal(err, moved.Error())
			}
		}
		sent.Add(1)
		p.Produce(t.Context(), &kgo.Record{Value: fmt.Append(nil, i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("record %d: %v", i, err)
			}
			sent.Done()
		})
	}
	sent.Wait()
	eventually(t, "the partition is on the nodes that were asked for", func() error {
		if got := replicasOf(t, ps); !slices.Equal(got, to) {
			return fmt.Errorf("it is to be on %v, want %v", got, to)
		}
		pending, err := adm.ListPartitionReassignments(t.Context(), nil)
		if err != nil {
			return err
		}
		if len(pending) > 0 {
			return fmt.Errorf("it moves: %+v", pending)
		}
		return nil
	})
	ps.leader("t", 0)
	for i, r := range consume(t, ps.client(kgo.ConsumeTopics("t")), records) {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %s: lost, doubled or out of order", i, r.Value)
		}
	}
}

// replicasOf returns the nodes that are to have t[0], as the first node knows it.
func replicasOf(t *testing.T, ps *peers) []int32 {
	t.Helper()
	p, err := ps.Node(0).Partition("t", 0)
	if err != nil {
		t.Fatal(err)
	}
	return p.Replicas()
}

func TestImpossibleReplicasAreRefused(t *testing.T) {
	ps := newPeers(t, 3)
	adm := kadm.NewClient(ps.client())
	if _, err := adm.CreateTopic(t.Context(), 1, 4, nil, "many"); !errors.Is(err, kerr.InvalidReplicationFactor) {
		t.Errorf("four replicas on three nodes: %v, want INVALID_REPLICATION_FACTOR", err)
	}
	ps.topic("t", 1)
	for _, to := range [][]int32{{1, 2, 9}, {1, 1, 2}, {}} {
		var req kadm.AlterPartitionAssignmentsReq
		req.Assign("t", 0, to)
		moved, err := adm.AlterPartitionAssignments(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if r := moved["t"][0]; !errors.Is(r.Err, kerr.InvalidReplicaAssignment) {
			t.Errorf("replicas %v: %v, want INVALID_REPLICA_ASSIGNMENT", to, r.Err)
		}
	}
}
