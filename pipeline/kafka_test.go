package pipeline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
)

type realKafka struct{ addr string }

func (k realKafka) ListenAddrs() []string { return []string{k.addr} }

// TestRealKafka kills source and sinks on a real Apache Kafka: transactions, consumer
// groups and offset commits with metadata are those of the original.
func TestRealKafka(t *testing.T) {
	t.Parallel()
	server, err := services.StartKafka(t.Context(), services.Options{Args: []string{"group.initial.rebalance.delay.ms=0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	c := realKafka{server.Addr}
	const total = 4000
	var emitted atomic.Int64
	var plain, ordered destination
	random := rand.New(rand.NewPCG(11, 12))
	file := func(run func(context.Context, pipeline.Position, pipeline.Emitter) error) *pipeline.File {
		f := sourceFile(script{run: run}, partitions(3))
		f.Sinks = []pipeline.SinkEntry{
			sinkEntry("plain", memory{to: &plain, resume: true}),
			sinkEntry("ordered", memory{to: &ordered, resume: true}, bound(20*time.Millisecond)),
		}
		return f
	}
	for range 3 {
		var wire cable
		j := open(t, c, wire.plug, remote)
		p := &paced{until: int64(100 + random.IntN(100)), reached: make(chan struct{})}
		w := worker(t, file(func(ctx context.Context, from pipeline.Position, out pipeline.Emitter) error {
			if err := counting(total, &emitted)(ctx, from, p.around(out)); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}), j, pipeline.WorkerOptions{Grace: time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-p.reached:
		case <-time.After(30 * time.Second): // all is emitted
		}
		wire.sever()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		j.Close()
	}
	once(t, c, file(counting(total, &emitted)), remote)
	checkNumbers(t, c, total)
	checkRows(t, plain.all(), total)
	seen := map[string]int{}
	for _, r := range ordered.all() {
		seen[r.Position]++
	}
	for _, k := range contents(t, c, pipeline.LateStream("p", "ordered"))[0] {
		seen[headerOf(k, pipeline.HeaderPosition)]++
	}
	for n := range total {
		if got := seen[strconv.Itoa(n)]; got != 1 {
			t.Errorf("ordered: number %d was delivered %d times", n, got)
		}
	}
	again := &destination{}
	f := sinkFile(sinkEntry("replayed", memory{to: again}))
	r, err := pipeline.NewReplay(f, open(t, c, remote), pipeline.ReplayOptions{Sink: "replayed"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkRows(t, again.all(), total)
}
