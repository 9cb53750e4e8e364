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
	// ends when they must be given up. The work of the assignment before is over. Where
	// limit is not 0 and nothing was given within it the error is errNoGrant.
	next(ctx context.Context, limit time.Duration) (parts []Partition, held context.Context, release func(), err error)
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

func (o *soleOwner) next(ctx context.Context, _ time.Duration) ([]Partition, context.Context, func(), error) {
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
	grants  *grants
}

// newGroupOwner joins the group. whole says that one member takes all partitions, as an
// order over all of them needs, once that this one ends by itself; idle is called when
// others have all there are.
func newGroupOwner(j *Journal, group string, streams []string, whole, once bool, idle func()) (*groupOwner, error) {
	o := &groupOwner{journal: j, group: group, grants: newGrants()}
	takeBack := func(context.Context, *kgo.Client, map[string][]int32) { o.grants.takeBack() }
	balancer := kgo.GroupBalancer(kgo.RangeBalancer())
	if whole {
		balancer = wholeBalancer{kgo.RangeBalancer()}
	}
	client, err := j.newClient(append(membership(group, streams, balancer, once),
		kgo.OnPartitionsAssigned(func(ctx context.Context, _ *kgo.Client, assigned map[string][]int32) {
			o.grants.takeBack()
			var parts []Partition
			for stream, numbers := range assigned {
				for _, n := range numbers {
					parts = append(parts, Partition{Stream: stream, Number: n})
				}
			}
			if len(parts) == 0 {
				idle()
				return
			}
			o.grants.give(ctx, parts)
		}),
		kgo.OnPartitionsRevoked(takeBack), kgo.OnPartitionsLost(takeBack))...)
	if err != nil {
		return nil, err
	}
	client.PauseFetchTopics(streams...)
	o.client = client
	return o, nil
}

func (o *groupOwner) next(ctx context.Context, limit time.Duration) ([]Partition, context.Context, func(), error) {
	return o.grants.next(ctx, limit)
}

// member is this worker's id in the group.
func (o *groupOwner) member() string {
	id, _ := o.client.GroupMetadata()
	return id
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
		offsets[p.Stream][p.Number] = kgo.EpochOffset{Epoch: c.epoch, Offset: c.offset}
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
