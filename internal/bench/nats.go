package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/internal/load"
)

// asyncWindow is how many messages of a connection may wait for their answer, where they are sent in a stream.
const asyncWindow = 4096

// natsLoad puts the same records on JetStream as a load puts on a Kafka. It stores messages one by one; where the load
// has batches they are published without waiting, each with an answer of its own. (Its atomic batches, which are files
// of their own first, took it half as long again.) Compression is the server's there, and off, as by default.
type natsLoad struct {
	o       load.Options
	corpus  [][]byte
	single  bool // one message a request, answered before the next
	end     time.Time
	latency load.Histogram
}

// produceNATS runs a load into a stream that is gone afterwards.
func produceNATS(ctx context.Context, o load.Options) (*load.Report, error) {
	n := &natsLoad{o: o, single: o.BatchRecords == 1}
	corpus := o.Corpus
	if corpus == "" {
		corpus = "json"
	}
	n.corpus = load.Corpus(corpus, 1024)
	conn, js, err := dialNATS(o.Brokers[0])
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	s, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: o.Stream, Subjects: []string{o.Stream}, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return nil, err
	}
	report, err := n.run(ctx)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	if int64(info.State.Msgs) != report.Produced.Records {
		return nil, fmt.Errorf("%d records acknowledged, the stream holds %d", report.Produced.Records, info.State.Msgs)
	}
	return report, js.DeleteStream(ctx, o.Stream)
}

func dialNATS(addr string) (*nats.Conn, jetstream.JetStream, error) {
	conn, err := nats.Connect(addr)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(asyncWindow))
	return conn, js, err
}

// run lets as many publishers work as a Kafka client would have requests in flight.
func (n *natsLoad) run(ctx context.Context) (*load.Report, error) {
	clients := n.o.Clients
	if clients == 0 {
		clients = 2
	}
	each := n.o.InFlight
	if each == 0 {
		each = 5
	}
	if n.o.Rate > 0 {
		each = max(1, 400/clients)
	}
	turns := make(chan time.Time, 1<<16)
	sent := make([]int64, clients*each)
	server, err := load.CPUOf(n.o.ServerPIDs...)
	if err != nil {
		return nil, err
	}
	client, start := load.OwnCPU(), time.Now()
	n.end = start.Add(n.o.Duration)
	group, inner := errgroup.WithContext(ctx)
	for c := range clients {
		conn, js, err := dialNATS(n.o.Brokers[0])
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if !n.single && n.o.Rate == 0 {
			group.Go(func() error { return n.stream(inner, js, &sent[c*each], c) })
			continue
		}
		for k := range each {
			i := c*each + k
			group.Go(func() error { return n.publishAll(inner, js, turns, &sent[i], i) })
		}
	}
	if n.o.Rate > 0 {
		group.Go(func() error {
			defer close(turns)
			return load.Pace(inner, -1, time.Duration(float64(time.Second)/n.o.Rate), n.end, func(_ int64, at time.Time) error {
				turns <- at
				return inner.Err()
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	took, clientUsed := time.Since(start), load.OwnCPU()-client
	used, err := load.CPUOf(n.o.ServerPIDs...)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, s := range sent {
		total += s
	}
	cpu := (used - server).Seconds()
	return &load.Report{
		Size: 1024, Batch: 1, Rate: n.o.Rate, ClientCPU: clientUsed.Seconds(), ServerCPU: &cpu,
		Produced: &load.Part{
			Records: total, Seconds: took.Seconds(), PerSecond: float64(total) / took.Seconds(),
			MB: float64(total) * 1024 / 1e6 / took.Seconds(), Latency: n.latency.Latency(),
		},
	}, nil
}

// publishAll publishes one message after the other, when it is due or as soon as the one before is answered.
func (n *natsLoad) publishAll(ctx context.Context, js jetstream.JetStream, turns <-chan time.Time, sent *int64, first int) error {
	for at := first; ctx.Err() == nil; at++ {
		due := time.Now()
		if n.o.Rate > 0 {
			turn, more := <-turns
			if !more {
				return nil
			}
			due = turn
		} else if due.After(n.end) {
			return nil
		}
		if _, err := js.Publish(ctx, n.o.Stream, n.corpus[at%len(n.corpus)]); err != nil {
			return err
		}
		n.latency.Add(time.Since(due), 1)
		*sent++
	}
	return ctx.Err()
}

// stream publishes messages as fast as they are answered.
func (n *natsLoad) stream(ctx context.Context, js jetstream.JetStream, sent *int64, first int) error {
	waiting := make(chan jetstream.PubAckFuture, asyncWindow)
	var answers errgroup.Group
	answers.Go(func() error {
		for f := range waiting {
			select {
			case <-f.Ok():
				*sent++
			case err := <-f.Err():
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	err := n.streamTo(ctx, js, waiting, first)
	close(waiting)
	return errors.Join(answers.Wait(), err)
}

func (n *natsLoad) streamTo(ctx context.Context, js jetstream.JetStream, waiting chan<- jetstream.PubAckFuture, first int) error {
	for at := first; time.Now().Before(n.end); at++ {
		f, err := js.PublishAsync(n.o.Stream, n.corpus[at%len(n.corpus)], jetstream.WithStallWait(10*time.Second))
		if err != nil {
			return err
		}
		select {
		case waiting <- f:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
