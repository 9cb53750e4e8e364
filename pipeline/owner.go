package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// owner says which partitions of a sink this worker delivers, and commits its cursors.
type owner interface {
	// next waits for the partitions to deliver from now on, and returns a context that
	// ends when they must be given up. The work of the assignment before is over.
	next(ctx context.Context) (parts []Partition, held context.Context, release func(), err error)
	// commit stores cursors of partitions held.
	commit(ctx context.Context, cursors map[Partition]cursor) error
	close()
}

// soleOwner owns all partitions: the journal is embedded, so no other process can be
// there.
type soleOwner struct {
	journal *Journal
	group   string
	parts   []Partition
}

func (o *soleOwner) next(ctx context.Context) ([]Partition, context.Context, func(), error) {
	return o.parts, ctx, func() {}, nil
}

func (o *soleOwner) commit(ctx context.Context, cursors map[Partition]cursor) error {
	return o.journal.saveCursors(ctx, o.group, cursors)
}

func (o *soleOwner) close() {}

// groupOwner shares the partitions with other workers through a consumer group. Its
// client is a member and nothing else: it fetches nothing.
type groupOwner struct {
	journal *Journal
	group   string
	client  *kgo.Client
	granted chan grant
}

// grant is one assignment.
type grant struct {
	parts []Partition
	held  context.Context
	over  context.CancelFunc // gives it up
	done  chan struct{}      // closed when the work on it is over
}

// The group's times: a worker that was killed is replaced after sessionTimeout.
const (
	sessionTimeout    = 10 * time.Second
	heartbeatInterval = time.Second
	rebalanceTimeout  = 30 * time.Second
)

// newGroupOwner joins the group. whole says that one member takes all partitions, as an
// order over all of them needs.
func newGroupOwner(j *Journal, group string, streams []string, whole bool) (*groupOwner, error) {
	o := &groupOwner{journal: j, group: group, granted: make(chan grant, 1)}
	var current *grant
	giveUp := func(context.Context, *kgo.Client, map[string][]int32) {
		if current == nil {
			return
		}
		current.over()
		select {
		case <-o.granted: // nobody had taken it
		default:
			<-current.done
		}
		current = nil
	}
	balancer := kgo.GroupBalancer(kgo.RangeBalancer())
	if whole {
		balancer = wholeBalancer{kgo.RangeBalancer()}
	}
	client, err := j.newClient(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(streams...), kgo.DisableAutoCommit(), kgo.Balancers(balancer),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(heartbeatInterval), kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.OnPartitionsAssigned(func(ctx context.Context, client *kgo.Client, assigned map[string][]int32) {
			giveUp(ctx, client, nil)
			var parts []Partition
			for stream, numbers := range assigned {
				for _, n := range numbers {
					parts = append(parts, Partition{Stream: stream, Number: n})
				}
			}
			if len(parts) == 0 {
				return
			}
			held, over := context.WithCancel(ctx)
			current = &grant{parts: parts, held: held, over: over, done: make(chan struct{})}
			o.granted <- *current
		}),
		kgo.OnPartitionsRevoked(giveUp), kgo.OnPartitionsLost(giveUp),
	)
	if err != nil {
		return nil, err
	}
	client.PauseFetchTopics(streams...)
	o.client = client
	return o, nil
}

func (o *groupOwner) next(ctx context.Context) ([]Partition, context.Context, func(), error) {
	select {
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	case g := <-o.granted:
		held, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(g.held, cancel)
		return g.parts, held, func() { stop(); cancel(); close(g.done) }, nil
	}
}

// commit fails where the partitions were taken away meanwhile: the group's generation
// fences this member.
func (o *groupOwner) commit(ctx context.Context, cursors map[Partition]cursor) error {
	metadata := map[Partition]string{}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for p, c := range cursors {
		m, err := o.journal.packState(ctx, o.group, p, c.state)
		if err != nil {
			return err
		}
		metadata[p] = m
		if offsets[p.Stream] == nil {
			offsets[p.Stream] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.Stream][p.Number] = kgo.EpochOffset{Epoch: -1, Offset: c.offset}
	}
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			t := &req.Topics[i]
			for k := range t.Partitions {
				m := metadata[Partition{Stream: t.Topic, Number: t.Partitions[k].Partition}]
				t.Partitions[k].Metadata = &m
			}
		}
		return nil
	})
	var failed error
	o.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = commitError(resp, err)
	})
	if failed != nil {
		return fmt.Errorf("committing offsets of group %s: %w", o.group, failed)
	}
	return nil
}

// close leaves the group, so that another worker takes over at once.
func (o *groupOwner) close() { o.client.Close() }
