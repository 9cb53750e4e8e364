package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/jepsen/history"
)

// Options are those of New.
type Options struct {
	// Seeds are addresses of the journal.
	Seeds []string
	// Observers are addresses of those that copy from the journal, each by itself.
	Observers []string
	// Dial connects to an address; nil is TCP from this process.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Racks are those of the nodes; readers of one are answered by its replica. Empty: all read from leaders.
	Racks []string
	// Replicas is how many each stream has; 0 leaves it to the journal.
	Replicas int16
	// Mode is the streams' daybook.durability; empty leaves it to the journal.
	Mode string
	// Partitions is how many each of the two streams has; 3 by default.
	Partitions int32
	// Each is how many clients there are of each kind; 2 by default.
	Each int
	// Pause is the mean time between two operations of a client; 20 ms by default.
	Pause time.Duration
	// Patience is how long a client waits for an outcome, before it is unknown; 8 s by default.
	Patience time.Duration
	// Seed makes the clients draw the same lots again.
	Seed uint64
}

// A Workload is clients of one journal. Its methods are called in their order.
type Workload struct {
	o   Options
	rec *history.Recorder

	mu         sync.Mutex // guards all below
	sessions   map[string]int
	generation int // of fleeting streams
}

// The streams.
const (
	plain     = "plain"     // producers send to it
	ledger    = "ledger"    // transactions do, and producers too
	group     = "readers"   // reads both
	registers = "registers" // the groups of committers begin with it
	fleeting  = "fleeting"  // the streams that come and go do
)

// watcher is who reads from an observer. It is the beginning of its sessions' names.
const watcher = "watcher"

// OfObserver says whether a session reads from an observer.
func OfObserver(session string) bool { return strings.HasPrefix(session, watcher) }

// New returns a workload that takes its history down in rec.
func New(o Options, rec *history.Recorder) *Workload {
	if o.Partitions == 0 {
		o.Partitions = 3
	}
	if o.Each == 0 {
		o.Each = 2
	}
	if o.Pause == 0 {
		o.Pause = 20 * time.Millisecond
	}
	if o.Patience == 0 {
		o.Patience = 8 * time.Second
	}
	if o.Replicas == 0 {
		o.Replicas = -1
	}
	return &Workload{o: o, rec: rec, sessions: map[string]int{}}
}

// Setup makes the streams, and waits until the journal and its observers have them.
func (w *Workload) Setup(ctx context.Context) error {
	c, err := w.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var configs map[string]*string
	if w.o.Mode != "" {
		configs = map[string]*string{"daybook.durability": &w.o.Mode}
	}
	a := kadm.NewClient(c)
	err = retry(ctx, "making the streams", func(ctx context.Context) error {
		made, err := a.CreateTopics(ctx, w.o.Partitions, w.o.Replicas, configs, plain, ledger)
		if err != nil {
			return err
		}
		for _, t := range made {
			if t.Err != nil && !exists(t.Err) {
				return fmt.Errorf("%s: %w: %s", t.Topic, t.Err, t.ErrMessage)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.await(ctx, a, int(w.o.Replicas)); err != nil {
		return err
	}
	for _, observer := range w.o.Observers {
		c, err := w.client(ctx, kgo.SeedBrokers(observer))
		if err != nil {
			return err
		}
		err = w.await(ctx, kadm.NewClient(c), -1)
		c.Close()
		if err != nil {
			return fmt.Errorf("observer %s: %w", observer, err)
		}
	}
	return nil
}

// await waits until the streams are there, with so many replicas unless it is below zero: faults of fewer would show
// nothing.
func (w *Workload) await(ctx context.Context, a *kadm.Client, replicas int) error {
	return retry(ctx, "looking for the streams", func(ctx context.Context) error {
		topics, err := a.ListTopics(ctx, plain, ledger)
		if err != nil {
			return err
		}
		for _, t := range topics {
			if len(t.Partitions) != int(w.o.Partitions) {
				return fmt.Errorf("%s has %d partitions", t.Topic, len(t.Partitions))
			}
			for _, p := range t.Partitions {
				if replicas >= 0 && len(p.ISR) != replicas {
					return fmt.Errorf("%s/%d has its records on nodes %v of %v", t.Topic, p.Partition, p.ISR, p.Replicas)
				}
			}
		}
		return nil
	})
}

// Run lets all clients work until ctx ends. An error is one of the workload's own: what the journal does wrong is in
// the history.
func (w *Workload) Run(ctx context.Context) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error // guarded by mu
	each := w.o.Each
	kinds := []struct {
		name    string
		clients int
		work    func(context.Context, *lot) error
	}{
		{"producer", each, w.produce}, {"transactor", each, w.transact}, {"reader", each, w.read}, {"member", each, w.join},
		{"registrar", each, w.register}, {"maker", each, w.make}, {"surveyor", each, w.survey}, {watcher, len(w.o.Observers), w.watch},
	}
	for k, kind := range kinds {
		for i := range kind.clients {
			l := &lot{Rand: rand.New(rand.NewPCG(w.o.Seed, uint64(k<<8|i))), name: kind.name, number: i}
			all.Go(func() {
				for ctx.Err() == nil {
					if err := kind.work(ctx, l); err != nil && ctx.Err() == nil {
						mu.Lock()
						errs = append(errs, fmt.Errorf("%s %d: %w", l.name, l.number, err))
						mu.Unlock()
						return
					}
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// lot is one client's: what it draws, and who it is.
type lot struct {
	*rand.Rand
	name   string
	number int
}

// session returns a name that no session has had.
func (w *Workload) session(l *lot) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("%s-%d", l.name, l.number)
	w.sessions[name]++
	return fmt.Sprintf("%s.%d", name, w.sessions[name])
}

// pause waits between operations; false says that ctx has ended.
func (w *Workload) pause(ctx context.Context, l *lot) bool {
	timer := time.NewTimer(time.Duration(l.Int64N(int64(2 * w.o.Pause))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// drawPartition returns one of a stream's.
func (w *Workload) drawPartition(l *lot) int32 { return l.Int32N(w.o.Partitions) }

// drawRack returns a node's rack, or none.
func (w *Workload) drawRack(l *lot) string {
	if len(w.o.Racks) == 0 {
		return ""
	}
	return w.o.Racks[l.IntN(len(w.o.Racks))]
}

// retry calls f until it succeeds or ctx ends.
func retry(ctx context.Context, what string, f func(context.Context) error) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var last error // of the tries that ctx did not cut short
	for {
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := f(short)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), errors.Join(last, err))
		case <-tick.C:
		}
	}
}
