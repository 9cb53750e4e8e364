package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/status"
	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/internal/services"
)

// looked is a cluster of servers in this process, looked after as an operator does.
type looked struct {
	t       *testing.T
	dir     string
	servers []*lookedServer
}

type lookedServer struct {
	dir, kafka, cluster string
	log                 *buffer
	cancel              context.CancelFunc
	ended               chan error // gets what Serve returned
}

// buffer is a log that can be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func lookAfter(t *testing.T, n int) *looked {
	l := &looked{t: t, dir: t.TempDir()} // asked for first, so that it is removed last
	t.Cleanup(func() {
		for _, s := range l.servers {
			s.cancel()
		}
		for _, s := range l.servers {
			<-s.ended
		}
	})
	for range n {
		l.add()
	}
	return l
}

func (l *looked) add() *lookedServer {
	l.t.Helper()
	s := &lookedServer{dir: filepath.Join(l.dir, fmt.Sprint("node-", len(l.servers)+1), "data"), kafka: services.AddressForTest(l.t), cluster: services.AddressForTest(l.t), log: &buffer{}}
	l.servers = append(l.servers, s)
	l.start(s)
	l.until("node to be up", func() bool {
		up := 0
		for _, m := range l.status().Members {
			if m.Up {
				up++
			}
		}
		return up == len(l.servers)
	})
	return s
}

// start starts a server, or starts it again, and returns when it answers its owner.
func (l *looked) start(s *lookedServer) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended = cancel, make(chan error, 1)
	o := node.ServerOptions{Dir: s.dir, Kafka: s.kafka, Version: "test", Log: slog.New(slog.NewTextHandler(s.log, nil)), Cluster: node.ClusterConfig{Listen: s.cluster}}
	if s != l.servers[0] {
		o.Cluster.Join = []string{l.servers[0].cluster}
	}
	go func() {
		err := node.Serve(ctx, o)
		for errors.Is(err, syscall.EADDRINUSE) && ctx.Err() == nil { // somebody's connection has got the port meanwhile
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			err = node.Serve(ctx, o)
		}
		s.ended <- err
	}()
	l.until("the server to answer", func() bool {
		select {
		case err := <-s.ended:
			s.ended <- err
			l.t.Fatalf("the server ended: %v\n%s", err, s.log)
		default:
		}
		_, err := l.verb(s, (*node.ClusterVerbs).Add)
		return err == nil
	})
}

// stop ends a server as SIGTERM does.
func (l *looked) stop(s *lookedServer) {
	l.t.Helper()
	s.cancel()
	select {
	case err := <-s.ended:
		if s.ended <- err; err != nil {
			l.t.Fatalf("the server ended with %v", err)
		}
	case <-time.After(time.Minute):
		l.t.Fatal("the server does not end")
	}
}

func (l *looked) until(what string, reached func() bool) {
	l.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !reached(); <-tick.C {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// verb runs a verb at a server and returns what it printed.
func (l *looked) verb(s *lookedServer, do func(*node.ClusterVerbs, context.Context) error) (string, error) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	err := do(&node.ClusterVerbs{Dir: s.dir, Out: &out}, ctx)
	return out.String(), err
}

func (l *looked) must(do func(*node.ClusterVerbs, context.Context) error) string {
	l.t.Helper()
	out, err := l.verb(l.servers[0], do)
	if err != nil {
		l.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func (l *looked) status() (s status.Cluster) {
	l.t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	_ = (&node.ClusterVerbs{Dir: l.servers[0].dir, Out: &out, JSON: true}).Status(ctx, true) // an error says that not all is in order
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		l.t.Fatalf("reading the status: %v\n%s", err, out.String())
	}
	return s
}

func (l *looked) inOrder() {
	l.t.Helper()
	l.until("a cluster in order", func() bool {
		_, err := l.verb(l.servers[0], func(v *node.ClusterVerbs, ctx context.Context) error { return v.Status(ctx, false) })
		return err == nil && l.status().Counts.Moving == 0
	})
}

func (l *looked) client(opts ...kgo.Opt) *kgo.Client {
	l.t.Helper()
	var seeds []string
	for _, s := range l.servers {
		seeds = append(seeds, s.kafka)
	}
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(seeds...))...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	return c
}

// An operator grows, spreads, changes and shrinks a cluster with the verbs alone.
func TestAClusterIsLookedAfterWithItsVerbs(t *testing.T) {
	t.Parallel()
	l := lookAfter(t, 2)
	admin := kadm.NewClient(l.client())
	for i := range 4 {
		if _, err := admin.CreateTopic(t.Context(), 1, 2, nil, fmt.Sprint("t", i)); err != nil {
			t.Fatal(err)
		}
	}
	l.inOrder()
	third := l.add()
	if out := l.must(func(v *node.ClusterVerbs, ctx context.Context) error { return v.Rebalance(ctx, true) }); !strings.Contains(out, "would move") {
		t.Errorf("with a new node there is nothing to move:\n%s", out)
	}
	l.must(func(v *node.ClusterVerbs, ctx context.Context) error { return v.Rebalance(ctx, false) })
	l.inOrder()
	l.must(func(v *node.ClusterVerbs, ctx context.Context) error { return v.Replicas(ctx, "t0", 3, false) })
	l.must(func(v *node.ClusterVerbs, ctx context.Context) error { return v.Transfer(ctx, "t0/0", 3) })
	l.until("node 3 to lead", func() bool { j := l.status().Journals[0]; return j.Leader == 3 && j.InSync == 3 })
	moved := l.must(func(v *node.ClusterVerbs, ctx context.Context) error { return v.Move(ctx, "t0/0", []int32{2, 1}) })
	if !strings.Contains(moved, "it had 3 copies, and has 2 from now on") {
		t.Errorf("a move to fewer nodes does not say what it means:\n%s", moved)
	}
	l.until("the journal to move", func() bool { j := l.status().Journals[0]; return j.Leader == 2 && j.Wanted == 2 && !j.Moving })
	out := l.must(func(v *node.ClusterVerbs, ctx context.Context) error { return v.Status(ctx, true) })
	for _, want := range []string{"3 nodes, 4 journals: in order", "t0/0", "2 leader; 1 in sync"} {
		if !strings.Contains(out, want) {
			t.Errorf("the status does not say %q:\n%s", want, out)
		}
	}
	l.must(func(v *node.ClusterVerbs, ctx context.Context) error { return v.Remove(ctx, node.Removal{Node: 3}) })
	select {
	case err := <-third.ended:
		if third.ended <- nil; !errors.Is(err, metadata.ErrRemoved) || !strings.Contains(err.Error(), "empty folder") {
			t.Errorf("the server that was taken out ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the server that was taken out goes on")
	}
	l.inOrder()
	two := "2"
	if _, err := admin.CreateTopic(t.Context(), 4, 1, map[string]*string{"daybook.journals": &two}, "wide"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		do   func(*node.ClusterVerbs, context.Context) error
		want error
	}{
		{"unknown stream", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Move(ctx, "no/0", []int32{1}) }, node.ErrConfig},
		{"stream wide has 2 journals: name one, from wide/0 to wide/1", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Move(ctx, "wide", []int32{1}) }, node.ErrConfig},
		{"unknown partition: stream t0 has one journal, t0/0,", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Transfer(ctx, "t0/7", 1) }, node.ErrConfig},
		{"unknown node", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Move(ctx, "t0/0", []int32{1, 9}) }, node.ErrConfig},
		{"unknown node 9: the cluster has 1,2", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Transfer(ctx, "t0/0", 9) }, node.ErrConfig},
		{"unknown node 9: the cluster has 1,2", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Remove(ctx, node.Removal{Node: 9}) }, node.ErrConfig},
		{"node 1 is named twice", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Move(ctx, "t0/0", []int32{1, 1}) }, node.ErrConfig},
		{"is not STREAM/JOURNAL", func(v *node.ClusterVerbs, ctx context.Context) error { return v.Move(ctx, "t0/x", []int32{1}) }, node.ErrConfig},
		{"no server runs", func(v *node.ClusterVerbs, ctx context.Context) error {
			return (&node.ClusterVerbs{Dir: t.TempDir()}).Status(ctx, false)
		}, node.ErrEnvironment},
	} {
		if _, err := l.verb(l.servers[0], c.do); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("got %v, want an error of %q", err, c.what)
		}
	}
}

// Every node is restarted, one after the other, under a producer: nothing that was acknowledged is missing, nothing is
// twice, and the order is kept.
func TestARollingRestartLosesNoAcknowledgement(t *testing.T) {
	t.Parallel()
	l := lookAfter(t, 3)
	if _, err := kadm.NewClient(l.client()).CreateTopic(t.Context(), 3, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	l.inOrder()
	producer := l.client(kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(64))
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				if err := producer.Flush(context.Background()); err != nil {
					t.Error(err)
				}
				stopped <- n
				return
			default:
			}
			producer.Produce(context.Background(), &kgo.Record{Partition: int32(n % 3), Value: fmt.Append(nil, n)}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("record %d was not acknowledged: %v", n, err)
				}
			})
		}
	}()
	for _, s := range l.servers {
		l.stop(s)
		l.start(s)
		l.inOrder()
	}
	close(stop)
	sent := <-stopped
	consumer := l.client(kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	next := [3]int{0, 1, 2}
	for got := 0; got < sent; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		fetched := consumer.PollFetches(ctx)
		cancel()
		if err := fetched.Err(); err != nil {
			t.Fatalf("after %d of %d: %v", got, sent, err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if want := fmt.Sprint(next[r.Partition]); string(r.Value) != want {
				t.Fatalf("partition %d offset %d holds %s, want %s", r.Partition, r.Offset, r.Value, want)
			}
			next[r.Partition] += 3
			got++
		})
	}
}
