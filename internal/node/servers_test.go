package node_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/servers"
	"github.com/daybook-data/daybook/internal/shop"
)

// long says that tests that take chances should take many (make nightly).
func long() bool { return os.Getenv("DAYBOOK_SEEDS") != "" }

// startServers starts three `daybook server` processes as one cluster until the test ends.
func startServers(t *testing.T, o servers.Options) *servers.Cluster {
	t.Helper()
	o.Binary, o.Dir = binaryPath, t.TempDir()
	c, err := servers.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.Nodes() {
				t.Logf("the end of node %d's log:\n%s", n.ID, n.LogTail())
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func clientOf(t *testing.T, c *servers.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// leaderOf waits until the cluster names a node that leads a partition.
func leaderOf(t *testing.T, c *servers.Cluster, stream string, partition int32) (leader *servers.Node) {
	t.Helper()
	adm := kadm.NewClient(clientOf(t, c))
	err := shop.Until(t.Context(), time.Minute, func(ctx context.Context) error {
		found, err := adm.Metadata(ctx, stream)
		if err != nil {
			return err
		}
		p, ok := found.Topics[stream].Partitions[partition]
		if !ok || p.Leader < 1 {
			return fmt.Errorf("nobody leads %s/%d: %+v", stream, partition, p)
		}
		leader = c.Nodes()[p.Leader-1]
		return leader.Running()
	})
	if err != nil {
		t.Fatal(err)
	}
	return leader
}

// restart starts a killed node and waits until it is ready.
func restart(t *testing.T, n *servers.Node) {
	t.Helper()
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if err := n.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}
