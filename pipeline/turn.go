package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// turn is a source's place among the workers that run the same pipeline on one journal: one of them runs the source, the
// others stand by, and one takes over when it ends, at once, or was killed, after sessionTimeout. It is a consumer group
// of its own, in which whoever has the stream's first partition runs the source.
//
// It decides who runs, so that workers don't fence each other; that nothing is appended twice does not depend on it: a
// worker that was taken for dead is fenced by its successor.
type turn struct {
	grants *grants
	client *kgo.Client
}

// turnSuffix makes the group of a source's turn of that of its checkpoint.
const turnSuffix = ".turn"

// takeTurn joins the workers of a source that appends to stream; once says that this one ends by itself.
func takeTurn(j *Journal, group, stream string, once bool, standby func()) (*turn, error) {
	t := &turn{grants: newGrants()}
	mine := func(m map[string][]int32) bool { return slices.Contains(m[stream], 0) }
	takeBack := func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
		if mine(lost) {
			t.grants.takeBack()
		}
	}
	client, err := j.newClient(append(membership(group, []string{stream}, wholeBalancer{kgo.CooperativeStickyBalancer()}, once),
		kgo.OnPartitionsAssigned(func(ctx context.Context, _ *kgo.Client, added map[string][]int32) {
			switch {
			case mine(added):
				t.grants.give(ctx, nil)
			case t.grants.current == nil:
				standby()
			}
		}),
		kgo.OnPartitionsRevoked(takeBack), kgo.OnPartitionsLost(takeBack))...)
	if err != nil {
		return nil, err
	}
	client.PauseFetchTopics(stream)
	t.client = client
	return t, nil
}

// next waits until it is this worker's turn, as grants.next does, and returns a context that ends when it is another's.
func (t *turn) next(ctx context.Context, limit time.Duration) (held context.Context, release func(), err error) {
	_, held, release, err = t.grants.next(ctx, limit)
	return held, release, err
}

// member is this worker's id in the group.
func (t *turn) member() string {
	id, _ := t.client.GroupMetadata()
	return id
}

// close lets another worker take over at once.
func (t *turn) close() { t.client.Close() }
