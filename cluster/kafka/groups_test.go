package kafka_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// shares follows which partitions a consumer owns.
type shares struct {
	mu    sync.Mutex
	owned map[int32]bool
	lost  int
}

func (s *shares) opts() []kgo.Opt {
	take := func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range m["t"] {
			s.owned[p] = true
		}
	}
	drop := func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range m["t"] {
			delete(s.owned, p)
			s.lost++
		}
	}
	return []kgo.Opt{kgo.OnPartitionsAssigned(take), kgo.OnPartitionsRevoked(drop), kgo.OnPartitionsLost(drop)}
}

func (s *shares) list() []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.owned))
}

func (s *shares) dropped() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// consumer polls in the background until it is stopped.
type consumer struct {
	*shares
	client *kgo.Client
	stop   func()

	mu  sync.Mutex
	got map[string]int // value -> how often
}

func newConsumer(b *broker, opts ...kgo.Opt) *consumer {
	c := &consumer{shares: &shares{owned: map[int32]bool{}}, got: map[string]int{}}
	c.client = b.client(append(append(c.opts(),
		kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"),
		kgo.HeartbeatInterval(100*time.Millisecond), kgo.AutoCommitInterval(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), opts...)...)
	ctx, cancel := context.WithCancel(context.Background())
	var polling sync.WaitGroup
	polling.Go(func() {
		for ctx.Err() == nil {
			c.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.got[string(r.Value)]++
			})
		}
	})
	c.stop = sync.OnceFunc(func() { cancel(); polling.Wait(); c.client.Close() })
	b.t.Cleanup(c.stop)
	return c
}

func (c *consumer) values() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.got)
}

// settled waits until the consumers share n partitions, each one at least one.
func settled(t *testing.T, n int, consumers ...*consumer) {
	t.Helper()
	eventually(t, "sharing the partitions", func() error {
		var all []int32
		for _, c := range consumers {
			owned := c.list()
			if len(owned) == 0 {
				return fmt.Errorf("a consumer owns nothing")
			}
			all = append(all, owned...)
		}
		slices.Sort(all)
		if len(all) != n || len(slices.Compact(all)) != n {
			return fmt.Errorf("owned are %v, want each of %d once", all, n)
		}
		return nil
	})
}

func TestThreeConsumersShareAndTakeOver(t *testing.T) {
	for name, balancer := range map[string]kgo.GroupBalancer{
		"eager": kgo.RangeBalancer(), "cooperative": kgo.CooperativeStickyBalancer(),
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *broker) {
				b.topic("t", 6, nil)
				var all []*consumer
				for range 3 {
					all = append(all, newConsumer(b, kgo.Balancers(balancer)))
				}
				settled(t, 6, all...)
				produce(t, b.client(), numbered("t", 500)...)
				all[0].stop()
				settled(t, 6, all[1:]...)
				produce(t, b.client(), numbered("u", 1)...)
				more := numbered("t", 500)
				for i := range more {
					more[i].Value = fmt.Appendf(nil, "more %d", i)
				}
				produce(t, b.client(), more...)
				eventually(t, "consuming everything", func() error {
					seen := map[string]bool{}
					for _, c := range all {
						for v := range c.values() {
							seen[v] = true
						}
					}
					if len(seen) != 1000 {
						return fmt.Errorf("%d of 1000 values seen", len(seen))
					}
					return nil
				})
			})
		})
	}
}

func TestCooperativeMembersKeepWhatTheyHave(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 4, nil)
		first := newConsumer(b, kgo.Balancers(kgo.CooperativeStickyBalancer()))
		settled(t, 4, first)
		second := newConsumer(b, kgo.Balancers(kgo.CooperativeStickyBalancer()))
		settled(t, 4, first, second)
		if n := first.dropped(); n != 2 {
			t.Errorf("the first consumer gave up %d partitions, want only the 2 that moved", n)
		}
	})
}

func TestStaticConsumerComesBackWithoutARebalance(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 4, nil)
		one := newConsumer(b, kgo.InstanceID("one"), kgo.Balancers(kgo.RangeBalancer()))
		settled(t, 4, one)
		two := newConsumer(b, kgo.InstanceID("two"), kgo.Balancers(kgo.RangeBalancer()))
		settled(t, 4, one, two)
		before, share := one.dropped(), two.list()
		two.stop() // a static member does not leave
		again := newConsumer(b, kgo.InstanceID("two"), kgo.Balancers(kgo.RangeBalancer()))
		settled(t, 4, one, again)
		if !slices.Equal(again.list(), share) {
			t.Errorf("came back to %v, had %v", again.list(), share)
		}
		if one.dropped() != before {
			t.Error("the other member was rebalanced")
		}
	})
}

func TestGroupGoesOnThroughARestart(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		b.topic("t", 2, nil)
		c := newConsumer(b)
		settled(t, 2, c)
		produce(t, b.client(), numbered("t", 100)...)
		eventually(t, "consuming", func() error { return want(len(c.values()), 100) })
		b.restart()
		more := numbered("t", 100)
		for i := range more {
			more[i].Value = fmt.Appendf(nil, "more %d", i)
		}
		produce(t, b.client(), more...)
		eventually(t, "consuming after the restart", func() error { return want(len(c.values()), 200) })
	})
}

func want(got, want int) error {
	if got != want {
		return fmt.Errorf("got %d, want %d", got, want)
	}
	return nil
}
