package kafka_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/clustertest"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// peers is a cluster in this process, each node with its Kafka face.
type peers struct {
	*clustertest.Cluster
	t     *testing.T
	kopts kafka.Options
	faces []*face
}

// face is the Kafka face of one node.
type face struct {
	addr  string
	scram string // where clients have to log in
	stop  func()
}

// newPeers starts n nodes, in racks r0, r1 and so on.
func newPeers(t *testing.T, n int, change ...func(*kafka.Options)) *peers {
	t.Helper()
	return newPeersOn(t, n, func(int, *cluster.Options) {}, change...)
}

// newPeersOn is newPeers with a change of each node's options.
func newPeersOn(t *testing.T, n int, options func(place int, o *cluster.Options), change ...func(*kafka.Options)) *peers {
	t.Helper()
	racks := 0
	ps := &peers{t: t, kopts: kafka.Options{Logger: testLogger(t)}}
	for _, f := range change {
		f(&ps.kopts)
	}
	ps.Cluster = clustertest.Start(t, n, func(o *cluster.Options) {
		o.Network.Rack = fmt.Sprint("r", racks)
		o.Logger = testLogger(t)
		options(racks, o)
		racks++
	})
	for i := range n {
		ps.faces = append(ps.faces, &face{addr: "127.0.0.1:0", scram: "127.0.0.1:0"})
		ps.serve(i)
	}
	t.Cleanup(func() {
		for _, f := range ps.faces {
			f.stop()
		}
	})
	return ps
}

// serve starts the Kafka face of a node.
func (ps *peers) serve(i int) {
	ps.t.Helper()
	f, node := ps.faces[i], ps.Node(i)
	open, secured := listen(ps.t, f.addr), listen(ps.t, f.scram)
	f.addr, f.scram = open.Addr().String(), secured.Addr().String()
	ctx, cancel := context.WithTimeout(ps.t.Context(), 60*time.Second)
	defer cancel()
	if err := node.Announce(ctx, map[string]string{peerListener: f.addr, "scram": f.scram}); err != nil {
		ps.t.Fatalf("announcing node %d: %v", node.ID(), err)
	}
	kopts := ps.kopts
	kopts.Node = node
	server, err := kafka.New(kopts)
	if err != nil {
		ps.t.Fatal(err)
	}
	serve, end := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	for l, access := range map[net.Listener]kafka.Access{
		open: {Name: peerListener}, secured: {Name: "scram", Mechanisms: []string{kafka.MechanismScramSHA512}},
	} {
		serving.Go(func() {
			if err := server.Serve(serve, l, access); err != nil {
				ps.t.Errorf("serving: %v", err)
			}
		})
	}
	f.stop = sync.OnceFunc(func() {
		end()
		if err := server.Close(); err != nil {
			ps.t.Errorf("closing a server: %v", err)
		}
		serving.Wait()
	})
}

// down stops a node with its face.
func (ps *peers) down(i int) {
	ps.t.Helper()
	ps.faces[i].stop()
	ps.Stop(i)
}

func (ps *peers) seeds() (all []string) {
	for _, f := range ps.faces {
		all = append(all, f.addr)
	}
	return all
}

func (ps *peers) client(opts ...kgo.Opt) *kgo.Client {
	ps.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(ps.seeds()...), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(20 * time.Millisecond), kgo.RequestRetries(1000),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		ps.t.Fatal(err)
	}
	ps.t.Cleanup(c.Close)
	return c
}
