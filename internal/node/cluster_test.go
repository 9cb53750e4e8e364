package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/servers"
	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/internal/shop"
	"github.com/daybook-data/daybook/pipeline"
)

// The whole way, MySQL to a cluster of three to Elasticsearch, Redis and files, by two workers: nodes and workers are killed,
// and at the end each sink has what its source has. The nightly run kills a node every 20 s for five minutes.
func TestSinksEqualSourcesWhileNodesAndWorkersAreKilled(t *testing.T) {
	t.Parallel()
	e := newEndToEnd(t)
	if !long() {
		e.killNode(leaderOf(t, e.nodes, "shop.changes", 0))
		e.killWorker(e.runs("shop-db"))
	} else {
		e.killForMinutes(5*time.Minute, 20*time.Second)
	}
	e.compare()
}

// endToEnd is a shop with its pipeline on a cluster.
type endToEnd struct {
	t           *testing.T
	shop        *shop.Shop
	nodes       *servers.Cluster
	binary      shop.Binary
	file        string
	workers     [2]*shop.Worker
	admin       [2]string // where the workers tell their status
	since       int       // changes that the database had seen when the snapshot was at the sinks
	stopTraffic func() error
	rnd         *rand.Rand
	gap         *gap
}

// newEndToEnd returns once the snapshot is at the sinks and traffic flows.
func newEndToEnd(t *testing.T) *endToEnd {
	e := &endToEnd{t: t, rnd: rand.New(rand.NewPCG(21, 21))}
	e.shop = openShop(t, shop.Options{NeedSearch: true, Seed: 21})
	e.nodes = startServers(t, servers.Options{})
	e.binary = shop.Binary{Path: binaryPath, Dir: t.TempDir()}
	var err error
	e.file, _, err = e.shop.WritePipeline(shop.PipelineOptions{
		Dir: e.binary.Dir, Journal: fmt.Sprintf("{brokers: [%s]}", strings.Join(e.nodes.Seeds(), ", ")),
		MaxOutOfOrder: "60s", Roll: "5s", Partitions: "3", Changes: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.shop.Database.Create(t.Context(), 500); err != nil {
		t.Fatal(err)
	}
	for i := range e.workers {
		e.admin[i] = services.AddressForTest(t)
		e.startWorker(i)
	}
	e.until("the snapshot at the sinks", func(ctx context.Context) error {
		_, err := e.shop.CompareSearch(ctx, "orders")
		return err
	})
	e.since, e.gap = e.shop.Database.Changes, watchGap(t, e.nodes)
	e.stopTraffic = startTraffic(t, e.shop)
	e.eventsFlow()
	return e
}

func (e *endToEnd) until(what string, check func(context.Context) error) {
	e.t.Helper()
	err := shop.Until(e.t.Context(), 2*time.Minute, func(ctx context.Context) error {
		for _, w := range e.workers {
			if err := w.Running(); err != nil {
				e.t.Fatalf("%s: %v", what, err)
			}
		}
		return check(ctx)
	})
	if err != nil {
		e.t.Fatalf("%s: %v\n%s", what, err, e.workers[0].LogTail())
	}
}

func (e *endToEnd) startWorker(i int) {
	e.t.Helper()
	var err error
	if e.workers[i], err = e.binary.Run(e.file, "--http", e.admin[i]); err != nil {
		e.t.Fatal(err)
	}
}

// eventsFlow waits until a worker takes events and has had them stored.
func (e *endToEnd) eventsFlow() {
	e.t.Helper()
	accepted := e.shop.App.Accepted()
	e.until("events", func(context.Context) error {
		if e.shop.App.Accepted() == accepted {
			return errors.New("no event is accepted")
		}
		return nil
	})
}

// runs returns which worker runs a source.
func (e *endToEnd) runs(source string) (worker int) {
	e.t.Helper()
	e.until("who runs "+source, func(ctx context.Context) error {
		var said []string
		for i, admin := range e.admin {
			state := stateOf(ctx, e.binary, admin, source)
			if state == pipeline.StateRunning {
				worker = i
				return nil
			}
			said = append(said, string(state))
		}
		return fmt.Errorf("the workers say %q", said)
	})
	return worker
}

func stateOf(ctx context.Context, binary shop.Binary, admin, source string) pipeline.State {
	out, err := binary.Once(ctx, "status", "--http", admin, "--json")
	var all []pipeline.Status
	if err != nil || json.Unmarshal([]byte(out), &all) != nil || len(all) == 0 {
		return ""
	}
	for _, s := range all[0].Sources {
		if s.Name == source {
			return s.State
		}
	}
	return ""
}

func (e *endToEnd) killNode(n *servers.Node) {
	e.t.Helper()
	if err := n.Kill(); err != nil {
		e.t.Fatal(err)
	}
	e.eventsFlow() // without the node
	restart(e.t, n)
}

func (e *endToEnd) killWorker(i int) {
	e.t.Helper()
	e.workers[i].Kill()
	e.startWorker(i)
	e.eventsFlow()
}

// killForMinutes kills a node in each interval, and workers at random moments.
func (e *endToEnd) killForMinutes(d, every time.Duration) {
	e.t.Helper()
	nodes, workers := 0, 0
	for end, next := time.Now().Add(d), time.Now(); time.Now().Before(end); next = next.Add(every) {
		time.Sleep(time.Until(next))
		e.killNode(e.nodes.Nodes()[e.rnd.IntN(3)])
		nodes++
		if e.rnd.IntN(3) > 0 {
			time.Sleep(time.Duration(e.rnd.IntN(5000)) * time.Millisecond) // the random moment itself
			e.killWorker(e.rnd.IntN(2))
			workers++
		}
	}
	e.t.Logf("%d kills of nodes, %d of workers", nodes, workers)
}

// compare waits until every sink equals its source.
func (e *endToEnd) compare() {
	e.t.Helper()
	if err := e.stopTraffic(); err != nil {
		e.t.Fatalf("traffic: %v\n%s", err, e.workers[0].LogTail())
	}
	e.gap.tell()
	if err := e.workers[1].Stop(); err != nil {
		e.t.Fatal(err)
	}
	compareAll(e.t, e.shop, e.workers[0], e.binary, e.file)
	n, err := e.shop.CompareChanges(e.t.Context(), filepath.Join(e.binary.Dir, "changes"), e.since)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Logf("%d changes of rows once each in the files, in order", n)
}

// gap watches how long a client is without an answer: one that writes a record every 20 ms to each of three partitions,
// of a journal each.
type gap struct {
	t     *testing.T
	stop  func()
	most  atomic.Int64 // nanoseconds
	acked atomic.Int64
}

func watchGap(t *testing.T, nodes *servers.Cluster) *gap {
	t.Helper()
	const stream, partitions = "gap", 3
	adm := kadm.NewClient(clientOf(t, nodes))
	journals := fmt.Sprint(partitions)
	if r, err := adm.CreateTopic(t.Context(), partitions, 3, map[string]*string{"daybook.journals": &journals}, stream); err != nil || r.Err != nil {
		t.Fatalf("making a stream: %v, %v", err, r.Err)
	}
	c := clientOf(t, nodes, kgo.DefaultProduceTopic(stream), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProducerLinger(0))
	ctx, cancel := context.WithCancel(t.Context())
	g := &gap{t: t}
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond / partitions)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			sent := time.Now()
			running.Add(1)
			c.Produce(context.Background(), &kgo.Record{Value: []byte("x")}, func(_ *kgo.Record, err error) {
				defer running.Done()
				if err != nil {
					t.Errorf("a record of who watches the gap: %v", err)
				}
				g.acked.Add(1)
				took := int64(time.Since(sent))
				for most := g.most.Load(); took > most && !g.most.CompareAndSwap(most, took); most = g.most.Load() {
				}
			})
		}
	})
	g.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(g.stop)
	return g
}

// tell ends the watch.
func (g *gap) tell() {
	g.stop()
	g.t.Logf("the longest that one of %d records waited for its answer: %s", g.acked.Load(), time.Duration(g.most.Load()).Round(time.Millisecond))
}
