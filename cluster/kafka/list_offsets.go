package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-data/daybook/cluster"
)

// The times that stand for something else.
const (
	offsetLatest       = -1
	offsetEarliest     = -2
	offsetMaxTimestamp = -3
	// Kafka's tiers: what is here is all local, and nothing is elsewhere.
	offsetEarliestLocal   = -4 // version 8
	offsetLatestTiered    = -5 // version 9
	offsetEarliestPending = -6 // version 11
)

// offsetsAtOnce is for how many partitions a request is looked up at a time: each journal takes a round of its members.
const offsetsAtOnce = 64

// listOffsets answers the first offset whose time is at or after the one asked
// for, or an end of the partition.
func (s *Server) listOffsets(c *call, req *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	asked := time.Now()
	var all errgroup.Group
	all.SetLimit(offsetsAtOnce)
	for _, t := range req.Topics {
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = t.Topic
		topic.Partitions = make([]kmsg.ListOffsetsResponseTopicPartition, len(t.Partitions))
		denied := c.topic(kmsg.ACLOperationDescribe, t.Topic)
		for i, p := range t.Partitions {
			answer := &topic.Partitions[i]
			*answer = kmsg.NewListOffsetsResponseTopicPartition()
			answer.Partition, answer.Timestamp, answer.Offset = p.Partition, -1, -1
			if denied != nil {
				answer.ErrorCode = errorCode(denied)
				continue
			}
			all.Go(func() error {
				answer.ErrorCode = errorCode(s.listOffset(c.version, t.Topic, p, req.IsolationLevel == 1, asked, answer))
				return nil
			})
		}
		resp.Topics = append(resp.Topics, topic)
	}
	_ = all.Wait() // each says for itself what went wrong
	return resp
}

// listOffset answers for a partition with what was acknowledged when it was asked.
func (s *Server) listOffset(version int16, topic string, req kmsg.ListOffsetsRequestTopicPartition, committed bool, asked time.Time, answer *kmsg.ListOffsetsResponseTopicPartition) error {
	p, err := s.node.Partition(topic, req.Partition)
	if err != nil {
		return err
	}
	if err := s.lead(p, req.CurrentLeaderEpoch); err != nil {
		return err
	}
	bounds, err := p.BoundsSince(asked)
	if err != nil {
		return err
	}
	leads, epoch := p.Leader() // now: nothing within the bounds is of a later one
	if leads != s.node.ID() {
		return cluster.ErrNotLeader
	}
	end := bounds.HighWatermark
	if committed {
		end = bounds.LastStable
	}
	found := cluster.TimedOffset{Offset: -1, Millis: -1}
	switch kind := req.Timestamp; {
	case kind == offsetLatest:
		answer.Offset, answer.LeaderEpoch = end, epoch
		return nil
	case kind == offsetEarliest, kind == offsetEarliestLocal && version >= 8:
		answer.Offset, answer.LeaderEpoch = bounds.Start, epoch
		return nil
	case kind == offsetLatestTiered && version >= 9, kind == offsetEarliestPending && version >= 11:
		return nil
	case kind == offsetMaxTimestamp:
		found, err = p.MaxTimestamp()
	default:
		if kind < 0 {
			return kerr.UnsupportedVersion // a kind of offset that is not offered
		}
		found, err = p.OffsetForTime(kind)
	}
	// What a reader of committed records cannot reach yet does not exist for it.
	if err != nil || found.Offset < 0 || found.Offset >= end {
		return err
	}
	answer.Offset, answer.Timestamp, answer.LeaderEpoch = found.Offset, found.Millis, found.LeaderEpoch
	return nil
}
