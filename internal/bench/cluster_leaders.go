package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leaders asks each node of a cluster who leads some streams, on a connection of its own.
type leaders struct {
	b       *bed
	streams []string
	clients map[int32]*kgo.Client // by node
}

func watchLeaders(b *bed, streams []string) (*leaders, error) {
	w := &leaders{b: b, streams: streams, clients: map[int32]*kgo.Client{}}
	for _, m := range b.members {
		c, err := kgo.NewClient(kgo.SeedBrokers(m.addr), kgo.RequestRetries(0))
		if err != nil {
			w.close()
			return nil, err
		}
		w.clients[m.id] = c
	}
	return w, nil
}

func (w *leaders) close() {
	for _, c := range w.clients {
		c.Close()
	}
}

// ask returns who leads each partition, as a node says; -1 where it knows nobody. away counts those that are not led by
// the first of their replicas.
func (w *leaders) ask(ctx context.Context, node int32) (by []int32, away int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	for _, s := range w.streams {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(s)
		req.Topics = append(req.Topics, t)
	}
	resp, err := w.clients[node].SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	for _, t := range resp.(*kmsg.MetadataResponse).Topics {
		for _, p := range t.Partitions {
			by = append(by, p.Leader)
			if len(p.Replicas) > 0 && p.Replicas[0] != p.Leader {
				away++
			}
		}
	}
	if len(by) != failoverStreams*failoverJournals {
		return nil, 0, fmt.Errorf("node %d knows %d partitions", node, len(by))
	}
	return by, away, nil
}

// settled waits until every partition is led by the first of its replicas, as what a cluster does until then is not nothing,
// but not for ever, and returns how many are not.
func (w *leaders) settled(ctx context.Context) (away int) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for away = -1; away != 0 && rest(ctx, time.Second) == nil; {
		if _, n, err := w.ask(ctx, w.b.members[0].id); err == nil {
			away = n
		}
	}
	return away
}

// ledBy waits until every node but the one that is gone (-1: none) says of every partition that another than that leads
// it, and returns how many partitions each leads.
func (w *leaders) ledBy(ctx context.Context, gone int32) (counts map[int32]int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("not all journals are led again"))
	defer cancel()
	for {
		counts, err = w.all(ctx, gone)
		if err == nil {
			return counts, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
		if rest(ctx, 5*time.Millisecond) != nil {
			continue // it is told above
		}
	}
}

func (w *leaders) all(ctx context.Context, gone int32) (counts map[int32]int, err error) {
	for node := range w.clients {
		if node == gone {
			continue
		}
		by, _, err := w.ask(ctx, node)
		if err != nil {
			return nil, err
		}
		counts = map[int32]int{}
		for _, leader := range by {
			if leader < 0 || leader == gone {
				return nil, fmt.Errorf("node %d says that node %d leads a journal", node, leader)
			}
			counts[leader]++
		}
	}
	return counts, nil
}
