package kafka_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-data/daybook/internal/services"
)

// processes starts a cluster of n nodes, each in a process of its own.
func processes(t *testing.T, n int) []*child {
	t.Helper()
	var all []*child
	var seeds []string
	for i := range n {
		c := &child{t: t, dir: t.TempDir(), addr: services.AddressForTest(t), peer: services.AddressForTest(t)}
		if i > 0 {
			c.join = all[0].peer
		}
		c.start()
		c.cleanUp()
		all, seeds = append(all, c), append(seeds, c.addr)
	}
	for _, c := range all {
		c.seeds = seeds
	}
	return all
}

// topic creates a topic on three nodes and waits until they agree who leads it, with all
// replicas in sync.
func (ps *peers) topic(name string, partitions int32) {
	ps.t.Helper()
	adm := kadm.NewClient(ps.client())
	if _, err := adm.CreateTopic(ps.t.Context(), partitions, 3, nil, name); err != nil {
		ps.t.Fatalf("creating %s: %v", name, err)
	}
	for i := range partitions {
		ps.leader(name, i)
	}
}

// leader waits until every node knows the same leader of a partition, with all replicas
// in sync, and returns its place.
func (ps *peers) leader(topic string, partition int32) int {
	ps.t.Helper()
	place := -1
	eventually(ps.t, fmt.Sprintf("leader of %s[%d]", topic, partition), func() error {
		seen := map[int32]bool{}
		for _, n := range ps.Nodes() {
			part, err := n.Partition(topic, partition)
			if err != nil {
				return err
			}
			id, _ := part.Leader()
			seen[id] = true
			place = ps.Place(id)
			if len(part.InSync()) != len(part.Replicas()) {
				return fmt.Errorf("node %d sees %v in sync of %v", n.ID(), part.InSync(), part.Replicas())
			}
		}
		if len(seen) != 1 || place < 0 {
			return fmt.Errorf("nodes name %v", seen)
		}
		return nil
	})
	return place
}
