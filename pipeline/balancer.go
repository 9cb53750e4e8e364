package pipeline

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// wholeBalancer gives all partitions of a group to one of its members; the others
// stand by. It is what an order over all partitions needs, and what a source needs that
// one worker may run. Members of a group that gives partitions up one by one
// (cooperative) keep theirs while others come and go.
type wholeBalancer struct{ kgo.GroupBalancer }

// ProtocolName keeps members apart that would share the partitions.
func (wholeBalancer) ProtocolName() string { return "daybook-whole" }

// MemberBalancer implements kgo.GroupBalancer.
func (b wholeBalancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	c, err := kgo.NewConsumerBalancer(b, members)
	if err != nil {
		return nil, nil, err
	}
	return c, c.MemberTopics(), nil
}

// Balance implements kgo.ConsumerBalancerBalance. Members are sorted; the first stays
// the first until it leaves or one with a lower id joins.
func (w wholeBalancer) Balance(b *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	plan := b.NewPlan()
	var first *kmsg.JoinGroupResponseMember
	b.EachMember(func(m *kmsg.JoinGroupResponseMember, _ *kmsg.ConsumerMemberMetadata) {
		if first == nil {
			first = m
		}
	})
	for topic, n := range topics {
		for p := range n {
			plan.AddPartition(first, topic, p)
		}
	}
	if w.IsCooperative() {
		plan.AdjustCooperative(b)
	}
	return plan
}

// commitError returns the first error in the answer to an offset commit.
func commitError(resp *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
