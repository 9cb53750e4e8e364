package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/internal/servers"
	"github.com/daybook-data/daybook/internal/shop"
)

// Whoever sends clients to nodes that are ready sends none to one that has lost most of the others.
func TestANodeIsNotReadyWhileMostOthersAreGone(t *testing.T) {
	t.Parallel()
	c := startServers(t, servers.Options{Nodes: 3})
	left, gone := c.Nodes()[0], c.Nodes()[1:]
	for _, n := range gone {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	err := shop.Until(t.Context(), time.Minute, func(ctx context.Context) error {
		if err := left.Ready(ctx); err == nil || !strings.Contains(err.Error(), "heard no leader") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&node.ClusterVerbs{Dir: left.Data(), Out: &bytes.Buffer{}}).Remove(t.Context(), node.Removal{Node: 2}); err == nil || !strings.Contains(err.Error(), "the metadata has no leader, so nothing can be decided") {
		t.Errorf("taking out one of those that are gone: %v", err)
	}
	for _, n := range gone {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.Nodes() {
		if err := n.AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The owner of an observer sees who it copies from, how far it is and what is wrong, and is sent to a node for the rest.
func TestTheOwnerOfAnObserverSeesHowFarItIs(t *testing.T) {
	t.Parallel()
	c := startServers(t, servers.Options{Nodes: 1})
	o := startServers(t, servers.Options{Nodes: 1, Args: []string{"--observe", c.Nodes()[0].Peer}}).Nodes()[0]
	p := clientOf(t, c, kgo.DefaultProduceTopic("t"), kgo.AllowAutoTopicCreation())
	if err := p.ProduceSync(t.Context(), &kgo.Record{Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	status := func(ctx context.Context, want ...string) error {
		var out bytes.Buffer
		err := (&node.ClusterVerbs{Dir: o.Data(), Out: &out}).Status(ctx, true)
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				return fmt.Errorf("it does not say %q (%v):\n%s", w, err, out.String())
			}
		}
		return err
	}
	address := c.Nodes()[0].Peer
	err := shop.Until(t.Context(), time.Minute, func(ctx context.Context) error {
		return status(ctx, "observer ", "1 stream: in order", address, "connected", "STREAM", "0 B")
	})
	if err != nil {
		t.Fatal(err)
	}
	verbs := &node.ClusterVerbs{Dir: o.Data(), Out: &bytes.Buffer{}}
	for verb, err := range map[string]error{
		"add":       verbs.Add(t.Context()),
		"move":      verbs.Move(t.Context(), "t/0", []int32{1}),
		"transfer":  verbs.Transfer(t.Context(), "t/0", 1),
		"remove":    verbs.Remove(t.Context(), node.Removal{Node: 1}),
		"rebalance": verbs.Rebalance(t.Context(), false),
		"replicas":  verbs.Replicas(t.Context(), "t", 1, false),
	} {
		if !errors.Is(err, node.ErrConfig) || !strings.Contains(err.Error(), "give the --data of a node") {
			t.Errorf("%s at an observer: %v", verb, err)
		}
	}
	if err := c.Nodes()[0].Kill(); err != nil {
		t.Fatal(err)
	}
	err = shop.Until(t.Context(), time.Minute, func(ctx context.Context) error {
		if err := status(ctx, "NOT IN ORDER", "not connected", "no upstream is connected"); err == nil || strings.Contains(err.Error(), "does not say") {
			return fmt.Errorf("without an upstream: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
