package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// target is the stream that is loaded.
type target struct {
	o       Options
	client  *kgo.Client
	admin   *kadm.Client
	leaders map[int32]string // address of each partition's leader
}

// openTarget finds the stream, making it if it is missing.
func openTarget(ctx context.Context, o Options) (*target, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.ClientID(clientID))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := reach(ctx, client); err != nil {
		client.Close()
		return nil, fmt.Errorf("%w: %v: %w", ErrUnreachable, o.Brokers, err)
	}
	t := &target{o: o, client: client, admin: kadm.NewClient(client), leaders: map[int32]string{}}
	if err := t.find(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return t, nil
}

func reach(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return client.Ping(ctx)
}

func (t *target) close() { t.client.Close() }

func (t *target) find(ctx context.Context) error {
	settings := map[string]*string{}
	for k, v := range t.o.Settings {
		settings[k] = &v
	}
	asked := t.o.Mode != Consume
	for ctx.Err() == nil {
		if asked {
			r, err := t.admin.CreateTopic(ctx, int32(t.o.Partitions), int16(t.o.Replicas), settings, t.o.Stream)
			if err = errors.Join(err, r.Err); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
				return fmt.Errorf("making stream %s: %w", t.o.Stream, err)
			}
			asked = false
		}
		topics, err := t.admin.Metadata(ctx, t.o.Stream)
		if err != nil {
			return fmt.Errorf("looking for stream %s: %w", t.o.Stream, err)
		}
		found := topics.Topics[t.o.Stream]
		if found.Err != nil && (t.o.Mode == Consume || !errors.Is(found.Err, kerr.UnknownTopicOrPartition)) {
			return fmt.Errorf("looking for stream %s: %w", t.o.Stream, found.Err)
		}
		if t.learn(found, topics.Brokers) {
			return nil
		}
		select { // a stream just made has no leaders yet
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// learn notes the leaders; false if one is missing.
func (t *target) learn(topic kadm.TopicDetail, brokers kadm.BrokerDetails) bool {
	for _, p := range topic.Partitions {
		i := slices.IndexFunc(brokers, func(b kadm.BrokerDetail) bool { return b.NodeID == p.Leader })
		if i < 0 {
			return false
		}
		t.leaders[p.Partition] = fmt.Sprintf("%s:%d", brokers[i].Host, brokers[i].Port)
	}
	return len(topic.Partitions) > 0
}

// offsets are places in the stream, by partition.
type offsets map[int32]int64

func (o offsets) sum() (n int64) {
	for _, at := range o {
		n += at
	}
	return n
}

// ends returns where the stream ends now.
func (t *target) ends(ctx context.Context) (offsets, error) {
	return t.listed(ctx, t.admin.ListEndOffsets)
}

func (t *target) starts(ctx context.Context) (offsets, error) {
	return t.listed(ctx, t.admin.ListStartOffsets)
}

// listed asks for offsets until all are known: a leader that was elected a moment ago may not know it yet.
func (t *target) listed(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error)) (offsets, error) {
	for give := time.Now().Add(t.o.Patience); ; {
		l, err := list(ctx, t.o.Stream)
		if err = errors.Join(err, l.Error()); err == nil {
			found := offsets{}
			l.Each(func(o kadm.ListedOffset) { found[o.Partition] = o.Offset })
			return found, nil
		}
		if !kerr.IsRetriable(l.Error()) || time.Now().After(give) {
			return nil, fmt.Errorf("asking for the ends of the stream: %w", err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// share is what one raw client takes care of: partitions with one leader.
type share struct {
	addr       string
	partitions []int32
}

// shares deals the partitions out to n clients, so that each is on the connection to its leader. Where there are more
// clients than partitions several have the same one, or none of it if alone is set.
func (t *target) shares(n int, alone bool) ([]share, error) {
	byLeader := map[string][]int32{}
	for _, p := range slices.Sorted(maps.Keys(t.leaders)) {
		byLeader[t.leaders[p]] = append(byLeader[t.leaders[p]], p)
	}
	addrs := slices.Sorted(maps.Keys(byLeader))
	if n < len(addrs) {
		return nil, fmt.Errorf("%w: %d raw clients for %d servers, each needs one", ErrOptions, n, len(addrs))
	}
	var dealt []share
	for i, addr := range addrs {
		clients, partitions := (n-i+len(addrs)-1)/len(addrs), byLeader[addr]
		if alone {
			clients = min(clients, len(partitions))
		}
		for c := range clients {
			s := share{addr: addr}
			for k := c; k < len(partitions); k += clients {
				s.partitions = append(s.partitions, partitions[k])
			}
			if len(s.partitions) == 0 {
				s.partitions = []int32{partitions[c%len(partitions)]}
			}
			dealt = append(dealt, s)
		}
	}
	return dealt, nil
}
