package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// grants hands the assignments of a consumer group to the one who works on them. Its
// methods but next are called by the client's callbacks, one at a time.
type grants struct {
	granted chan grant
	current *grant
}

// grant is one assignment.
type grant struct {
	parts []Partition
	held  context.Context
	over  context.CancelFunc // gives it up
	done  chan struct{}      // closed when the work on it is over
}

func newGrants() *grants { return &grants{granted: make(chan grant, 1)} }

// give hands partitions out until ctx ends or they are taken back.
func (g *grants) give(ctx context.Context, parts []Partition) {
	held, over := context.WithCancel(ctx)
	g.current = &grant{parts: parts, held: held, over: over, done: make(chan struct{})}
	g.granted <- *g.current
}

// takeBack returns when nobody works on what was given.
func (g *grants) takeBack() {
	if g.current == nil {
		return
	}
	g.current.over()
	select {
	case <-g.granted: // nobody had taken it
	default:
		<-g.current.done
	}
	g.current = nil
}

// errNoGrant says that there was nothing to work on for as long as next was to wait.
var errNoGrant = errors.New("other workers have all there is")

// next waits for partitions to work on, for at most limit where that is not 0, and returns
// a context that ends when they must be given up. release says that the work on them is
// over.
func (g *grants) next(ctx context.Context, limit time.Duration) (parts []Partition, held context.Context, release func(), err error) {
	var over <-chan time.Time
	if limit > 0 {
		over = time.After(limit)
	}
	select {
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	case <-over:
		return nil, nil, nil, errNoGrant
	case got := <-g.granted:
		held, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(got.held, cancel)
		return got.parts, held, func() { stop(); cancel(); close(got.done) }, nil
	}
}

// The group's times: a worker that was killed is replaced after sessionTimeout.
const (
	sessionTimeout    = 6 * time.Second
	heartbeatInterval = time.Second
	rebalanceTimeout  = 30 * time.Second
)

// membership are the options of a client that is a member of a group and nothing else:
// it is told of partitions, and fetches none. once says that it ends by itself.
func membership(group string, streams []string, balancer kgo.GroupBalancer, once bool) []kgo.Opt {
	return []kgo.Opt{
		kgo.ClientID(peerID(once)), kgo.ConsumerGroup(group), kgo.ConsumeTopics(streams...), kgo.DisableAutoCommit(), kgo.Balancers(balancer),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(heartbeatInterval), kgo.RebalanceTimeout(rebalanceTimeout),
	}
}
