package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

// request is a Produce request that is sent again and again.
type request struct {
	frame   []byte
	batches []batch
	records int64
	acked   atomic.Int64 // how often it was stored
}

// rawProducer is one connection that sends its requests in turn.
type rawProducer struct {
	run      *run
	addr     string
	conn     *rawConn // from connect on
	requests []*request
	next     int
	turns    chan time.Time // when requests are due; nil: as soon as there is room
}

// waiting is a request on its way.
type waiting struct {
	*request
	due         time.Time
	correlation int32
}

const (
	requestBytes  = 1_000_000 // what a request carries if nothing else is asked for
	preparedBytes = 128 << 20 // bounds the prepared requests of all clients
	mostRounds    = 16        // different requests for the same partitions
)

// newRawProducers prepares the requests of all clients.
func newRawProducers(r *run, shares []share) ([]*rawProducer, error) {
	enc, err := newEncoder(r.o.Compression)
	if err != nil {
		return nil, err
	}
	per := r.o.recordsPerBatch()
	var made []batch // each is used for several partitions
	for first := 0; first < max(len(r.corpus), per); first += per {
		made = append(made, enc.encode(r.corpus, first, per, time.Now().UnixMilli()))
	}
	for _, b := range made {
		r.plainBytes += int64(b.n * r.o.Size)
		r.sentBytes += int64(len(b.data))
	}
	acks := map[string]int16{"all": -1, "1": 1, "0": 0}[r.o.Acks]
	rounds := max(1, min(mostRounds, preparedBytes/(len(made[0].data)*max(len(r.t.leaders), len(shares)))))
	producers, n := make([]*rawProducer, len(shares)), 0
	for i, s := range shares {
		p := &rawProducer{run: r, addr: s.addr}
		for range rounds {
			at := r.o.RequestBatches
			if at == 0 {
				at = max(1, requestBytes/len(made[0].data))
			}
			for rest := s.partitions; len(rest) > 0; rest = rest[min(at, len(rest)):] {
				some := make([]batch, min(at, len(rest)))
				for k := range some {
					some[k], n = made[n%len(made)], n+1
				}
				p.requests = append(p.requests, newRequest(r.o.Stream, acks, rest, some))
			}
		}
		producers[i] = p
	}
	return producers, nil
}

func newRequest(stream string, acks int16, partitions []int32, batches []batch) *request {
	q := &request{batches: batches}
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = stream
	for i, b := range batches {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = partitions[i], b.data
		topic.Partitions = append(topic.Partitions, p)
		q.records += int64(b.n)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = produceVersion, acks, 30_000
	req.Topics = []kmsg.ProduceRequestTopic{topic}
	q.frame = frameOf(nil, req)
	return q
}

// connect comes before the clock starts: what 400 connections take to be made is not the latency of requests. It returns
// when the server has answered something.
func (p *rawProducer) connect(ctx context.Context) error {
	c, err := dialRaw(ctx, p.addr, 4<<10)
	if err != nil {
		return err
	}
	p.conn = c
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := c.send(frameOf(nil, kmsg.NewPtrApiVersionsRequest()), 0); err != nil {
		return err
	}
	_, _, err = c.receive()
	return err
}

// close ends the connection, if there is one.
func (p *rawProducer) close() {
	if p.conn != nil {
		p.conn.Close()
	}
}

// produce sends until the run's records are sent or its time is over, and waits for the answers.
func (p *rawProducer) produce(ctx context.Context) error {
	c := p.conn
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if p.run.o.InFlight == 1 && p.turns == nil {
		return p.alternate(ctx, c)
	}
	sent := make(chan waiting, p.run.o.InFlight-1) // and the one whose answer is being awaited
	var both errgroup.Group
	both.Go(func() error {
		defer close(sent)
		return p.send(ctx, c, sent)
	})
	err := p.collect(c, sent)
	if err != nil {
		c.Close()
		for range sent { // until the sender has noticed
		}
	}
	if sending := both.Wait(); err == nil {
		err = sending
	}
	return err
}

// alternate sends a request when the one before is answered.
func (p *rawProducer) alternate(ctx context.Context, c *rawConn) error {
	for n := int32(0); p.run.claim(ctx, p.peek().records); n++ {
		w := waiting{p.take(), time.Now(), n}
		if err := c.send(w.frame, n); err != nil {
			return err
		}
		if err := p.settle(c, w); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// send sends what there is room for.
func (p *rawProducer) send(ctx context.Context, c *rawConn, sent chan<- waiting) error {
	for n := int32(0); ; n++ {
		due := time.Time{}
		if p.turns != nil {
			at, more := <-p.turns
			if !more {
				return nil
			}
			due = at
		} else if !p.run.claim(ctx, p.peek().records) {
			return ctx.Err()
		}
		w := waiting{p.take(), due, n}
		if due.IsZero() {
			w.due = time.Now()
		}
		select {
		case sent <- w: // room comes first: the answer may be there before the write returns
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.send(w.frame, n); err != nil {
			return err
		}
	}
}

func (p *rawProducer) collect(c *rawConn, sent <-chan waiting) error {
	for w := range sent {
		if err := p.settle(c, w); err != nil {
			return err
		}
	}
	return nil
}

// settle waits for a request's answer and counts it.
func (p *rawProducer) settle(c *rawConn, w waiting) error {
	if p.run.o.Acks != "0" { // else nobody answers
		body, correlation, err := c.receive()
		if err != nil {
			return fmt.Errorf("waiting for an answer to Produce: %w", err)
		}
		if correlation != w.correlation {
			return fmt.Errorf("%w: it is number %d, want %d", errAnswer, correlation, w.correlation)
		}
		if err := producedAll(body, len(w.batches)); err != nil {
			return err
		}
		p.run.produceLatency.Add(time.Since(w.due), w.records)
	}
	w.acked.Add(1)
	p.run.produced.Add(w.records)
	return nil
}

// producedAll reads an answer to Produce, in which each batch must have been stored.
func producedAll(body []byte, batches int) error {
	r, stored := reader{b: body}, 0
	for range max(r.int32(), 0) {
		r.take(int(r.int16()))
		for range max(r.int32(), 0) {
			partition, code := r.int32(), r.int16()
			r.take(24) // base offset, append time, start of the log
			if err := kerr.ErrorForCode(code); err != nil {
				return fmt.Errorf("partition %d refused a batch: %w", partition, err)
			}
			if r.bad {
				return errAnswer
			}
			stored++
		}
	}
	if stored != batches {
		return fmt.Errorf("%w: %d batches of %d are in it", errAnswer, stored, batches)
	}
	return r.err()
}

func (p *rawProducer) peek() *request { return p.requests[p.next] }

func (p *rawProducer) take() *request {
	q := p.requests[p.next]
	p.next = (p.next + 1) % len(p.requests)
	return q
}

// dealTurns makes the requests of all producers due at the run's rate, one producer after the other.
func dealTurns(ctx context.Context, r *run, producers []*rawProducer) error {
	var requests, records int64
	for _, p := range producers {
		for _, q := range p.requests {
			requests, records = requests+1, records+q.records
		}
	}
	gap := time.Duration(float64(time.Second) * float64(records) / float64(requests) / r.o.Rate)
	defer func() {
		for _, p := range producers {
			close(p.turns)
		}
	}()
	turns := int64(-1)
	if r.o.Records > 0 {
		turns = (r.o.Records*requests + records - 1) / records
	}
	return Pace(ctx, turns, gap, r.end, func(turn int64, at time.Time) error {
		p := producers[turn%int64(len(producers))]
		select {
		case p.turns <- at:
		default: // its client is behind: whatever waits now is charged for that
			select {
			case p.turns <- at:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	})
}
