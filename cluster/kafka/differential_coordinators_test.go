package kafka_test

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// initProducer asks for a producer's id.
func (p *peer) initProducer(client *kgo.Client, title string, txn *string, change ...func(*kmsg.InitProducerIDRequest)) *kmsg.InitProducerIDResponse {
	p.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = txn, 60_000, -1, -1
	for _, f := range change {
		f(req)
	}
	return askOn[*kmsg.InitProducerIDResponse](p, client, title, req, "ProducerEpoch") // how far it rises is the broker's affair
}

// idempotent is a batch of an idempotent producer.
func idempotent(producer int64, epoch int16, sequence int32, values ...string) []byte {
	return batch{producer: producer, epoch: epoch, sequence: sequence, values: values}.encode()
}

func askProducers(p *peer) {
	topic := p.topic("t", 2)
	id := p.initProducer(p.client, "an id", nil).ProducerID
	p.append("the first", topic, 0, nil, idempotent(id, 0, 0, "a", "b"))
	p.append("the second", topic, 0, nil, idempotent(id, 0, 2, "c"))
	p.append("the first again", topic, 0, nil, idempotent(id, 0, 0, "a", "b"))
	p.append("the second again", topic, 0, nil, idempotent(id, 0, 2, "c"))
	p.append("a gap", topic, 0, nil, idempotent(id, 0, 5, "f"))
	p.append("half of one that is there", topic, 0, nil, idempotent(id, 0, 1, "b"))
	p.append("another partition begins anywhere", topic, 1, nil, idempotent(id, 0, 7, "x"))
	for i := range 6 {
		p.append(fmt.Sprintf("more %d", i), topic, 0, nil, idempotent(id, 0, int32(3+i), "m"))
	}
	p.append("a repeat beyond the window", topic, 0, nil, idempotent(id, 0, 0, "a", "b"))
	p.append("the oldest in the window", topic, 0, nil, idempotent(id, 0, 4, "m"))
	p.append("a new epoch with an old sequence", topic, 0, nil, idempotent(id, 1, 9, "n"))
	p.append("a new epoch from 0", topic, 0, nil, idempotent(id, 1, 0, "n"))
	p.append("the old epoch", topic, 0, nil, idempotent(id, 0, 9, "o"))
	p.append("a producer nobody knows", topic, 0, nil, idempotent(id+1_000_000, 0, 0, "u"))
	p.append("another nobody knows, not from 0", topic, 0, nil, idempotent(id+2_000_000, 0, 4, "u"))
	p.append("the last sequences", topic, 1, nil, idempotent(id+3_000_000, 0, 2147483646, "y", "z"))
	p.append("sequences begin anew", topic, 1, nil, idempotent(id+3_000_000, 0, 0, "w"))
	p.fetch("what was stored", topic, 0, 0, 1<<20)
	p.fetch("what was stored in the other", topic, 1, 0, 1<<20)
}

// joinRequest is a member's, of the protocol "range".
func (p *peer) joinRequest(group, member string, change ...func(*kmsg.JoinGroupRequest)) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 30_000
	proto := kmsg.NewJoinGroupRequestProtocol()
	proto.Name, proto.Metadata = "range", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	req.Protocols = append(req.Protocols, proto)
	for _, f := range change {
		f(req)
	}
	return req
}

func (p *peer) commitOffset(title, group, member string, generation int32, topic string, partition int32, offset int64, metadata string) {
	p.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, p.ids[topic]
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset, part.Metadata = partition, offset, &metadata
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	ask[*kmsg.OffsetCommitResponse](p, title, req)
}

func (p *peer) fetchOffset(title, group, topic string, partitions ...int32) {
	p.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	if topic != "" {
		t := kmsg.NewOffsetFetchRequestTopic()
		t.Topic, t.Partitions = topic, partitions
		req.Topics = append(req.Topics, t)
		gt := kmsg.NewOffsetFetchRequestGroupTopic()
		gt.Topic, gt.TopicID, gt.Partitions = topic, p.ids[topic], partitions
		g.Topics = append(g.Topics, gt)
	}
	req.Groups = append(req.Groups, g)
	ask[*kmsg.OffsetFetchResponse](p, title, req)
}

func askGroups(p *peer) {
	topic := p.topic("t", 2)
	group := p.name("g")
	p.fetchOffset("of no group", group, topic, 0)
	p.commitOffset("by nobody", group, "", -1, topic, 0, 5, "note")
	p.commitOffset("by a member of an empty group", group, "someone", 3, topic, 0, 6, "")
	p.commitOffset("of no topic", group, "", -1, p.name("none"), 0, 6, "")
	p.commitOffset("of no partition", group, "", -1, topic, 9, 6, "")
	p.commitOffset("a long note", group, "", -1, topic, 1, 6, string(make([]byte, 5000)))
	p.fetchOffset("what was committed", group, topic, 0, 1, 9)
	p.fetchOffset("all", group, "")

	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{group, p.name("none")}
	ask[*kmsg.DescribeGroupsResponse](p, "describing", describe)

	for _, partition := range []int32{0, 9} {
		forget := kmsg.NewPtrOffsetDeleteRequest()
		forget.Group = group
		t := kmsg.NewOffsetDeleteRequestTopic()
		t.Topic = topic
		t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: partition})
		forget.Topics = append(forget.Topics, t)
		ask[*kmsg.OffsetDeleteResponse](p, fmt.Sprintf("forgetting %d", partition), forget)
	}
	p.fetchOffset("what was forgotten", group, topic, 0)

	remove := func(title, name string) {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{name}
		ask[*kmsg.DeleteGroupsResponse](p, title, req)
	}
	p.commitOffset("again", group, "", -1, topic, 0, 7, "")
	remove("removing", group)
	remove("removing it again", group)
	remove("removing none", p.name("none"))
	p.fetchOffset("of the removed", group, topic, 0)
}

func askMembers(p *peer) {
	topic := p.topic("t", 2)
	group := p.name("g")
	heartbeat := func(title, member string, generation int32) {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = group, member, generation
		ask[*kmsg.HeartbeatResponse](p, title, req)
	}
	sync := func(title, member string, generation int32, kind, protocol string) *kmsg.SyncGroupResponse {
		req := kmsg.NewPtrSyncGroupRequest()
		req.Group, req.MemberID, req.Generation = group, member, generation
		req.ProtocolType, req.Protocol = &kind, &protocol
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = member, []byte("what is yours")
		req.GroupAssignment = append(req.GroupAssignment, a)
		return ask[*kmsg.SyncGroupResponse](p, title, req)
	}
	leave := func(title, member string) {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.MemberID = group, member
		req.Members = append(req.Members, kmsg.LeaveGroupRequestMember{MemberID: member})
		ask[*kmsg.LeaveGroupResponse](p, title, req)
	}
	join := func(title, member string, change ...func(*kmsg.JoinGroupRequest)) *kmsg.JoinGroupResponse {
		return ask[*kmsg.JoinGroupResponse](p, title, p.joinRequest(group, member, change...), "ProtocolMetadata", "LeaderID")
	}
	heartbeat("a heartbeat in no group", "someone", 1)
	sync("a sync in no group", "someone", 1, "consumer", "range")
	leave("leaving no group", "someone")
	join("a session of no time", "", func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1 })
	join("a long session", "", func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1 << 30 })
	join("as someone who is not there", "someone")
	first := join("for the first time", "")
	join("without a protocol", first.MemberID, func(r *kmsg.JoinGroupRequest) { r.Protocols = nil })
	in := join("with the id", first.MemberID)
	heartbeat("before the sync", in.MemberID, in.Generation)
	sync("of another generation", in.MemberID, in.Generation+1, "consumer", "range")
	sync("of another protocol", in.MemberID, in.Generation, "consumer", "sticky")
	sync("as the leader", in.MemberID, in.Generation, "consumer", "range")
	sync("once more", in.MemberID, in.Generation, "consumer", "range")
	heartbeat("well", in.MemberID, in.Generation)
	heartbeat("of another generation", in.MemberID, in.Generation-1)
	heartbeat("of another member", "someone", in.Generation)
	p.commitOffset("as a member", group, in.MemberID, in.Generation, topic, 0, 3, "")
	p.commitOffset("of an older generation", group, in.MemberID, in.Generation-1, topic, 0, 4, "")
	p.commitOffset("as nobody in a group with members", group, "", -1, topic, 0, 4, "")
	p.commitOffset("as another", group, "someone", in.Generation, topic, 0, 4, "")
	p.fetchOffset("what holds", group, topic, 0)
	join("with protocols of another kind", "", func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "connect" })
	other := kmsg.NewPtrDeleteGroupsRequest()
	other.Groups = []string{group}
	ask[*kmsg.DeleteGroupsResponse](p, "removing a group with members", other)
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{group}
	ask[*kmsg.DescribeGroupsResponse](p, "describing", describe, "ProtocolMetadata")
	leave("leaving as another", "someone")
	leave("leaving", in.MemberID)
	leave("leaving again", in.MemberID)
	ask[*kmsg.DescribeGroupsResponse](p, "describing what is empty", describe, "ProtocolType") // which Apache Kafka remembers

	instance := p.name("instance")
	static := func(r *kmsg.JoinGroupRequest) { r.InstanceID = &instance }
	one := join("a static member", "", static)
	two := join("its next life", "", static)
	heartbeat("of the former life", one.MemberID, one.Generation)
	heartbeat("of the life that goes on", two.MemberID, two.Generation)
	join("as the former life", one.MemberID, static)
}

// txn are the requests of one transactional producer.
type txn struct {
	p      *peer
	client *kgo.Client
	id     string
	pid    int64
	epoch  int16
}

// newTxn begins with version 1 of the protocol of transactions, in which partitions are
// added by a request of their own.
func (p *peer) newTxn(client *kgo.Client, name string) *txn {
	x := &txn{p: p, client: client, id: p.name(name)}
	r := p.initProducer(client, "init "+name, &x.id)
	x.pid, x.epoch = r.ProducerID, r.ProducerEpoch
	return x
}

func (x *txn) add(title, topic string, partition int32) {
	x.p.t.Helper()
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = x.id, x.pid, x.epoch
	t := kmsg.NewAddPartitionsToTxnRequestTopic()
	t.Topic, t.Partitions = topic, []int32{partition}
	req.Topics = append(req.Topics, t)
	askOn[*kmsg.AddPartitionsToTxnResponse](x.p, x.client, title, req)
}

func (x *txn) end(title string, commit bool, ignored ...string) *kmsg.EndTxnResponse {
	x.p.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = x.id, x.pid, x.epoch, commit
	return askOn[*kmsg.EndTxnResponse](x.p, x.client, title, req, ignored...)
}

func (x *txn) addGroup(title, group string) {
	x.p.t.Helper()
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = x.id, x.pid, x.epoch, group
	askOn[*kmsg.AddOffsetsToTxnResponse](x.p, x.client, title, req)
}

func (x *txn) commitOffset(title, group, topic string, partition int32, offset int64, ignored ...string) {
	x.p.t.Helper()
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = x.id, x.pid, x.epoch, group, -1
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, x.p.ids[topic]
	part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset = partition, offset
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	askOn[*kmsg.TxnOffsetCommitResponse](x.p, x.client, title, req, ignored...)
}

// at is the producer with another epoch.
func (x *txn) at(epoch int16) *txn {
	other := *x
	other.epoch = epoch
	return &other
}

func (x *txn) append(title, topic string, sequence int32, values ...string) {
	x.p.t.Helper()
	x.p.append(title, topic, 0, &x.id, txnBatch(x.pid, x.epoch, sequence, values...))
}

// oldClient speaks versions that know transactions of version 1 only.
func (p *peer) oldClient() *kgo.Client {
	client, err := kgo.NewClient(append(p.client.Opts(), kgo.MaxVersions(kversion.V3_4_0()))...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(client.Close)
	return client
}

func askTransactions(p *peer) {
	p.client = p.oldClient()
	topic := p.topic("t", 1)
	x := p.newTxn(p.client, "x")
	x.end("ending what has not begun", true)
	x.append("a batch of no transaction", topic, 0, "a")
	x.add("adding no topic", p.name("none"), 0)
	x.add("adding no partition", topic, 9)
	x.add("adding", topic, 0)
	x.append("appending", topic, 0, "a", "b")
	committed := func(r *kmsg.FetchRequest) { r.IsolationLevel = 1 }
	p.fetch("open, all", topic, 0, 0, 1<<20)
	p.fetch("open, what is committed", topic, 0, 0, 1<<20, committed)
	p.offsetAt("open, last", topic, 0, -1, 0)
	p.offsetAt("open, last committed", topic, 0, -1, 1)
	p.append("beside it", topic, 0, nil, plainBatch("c"))
	p.fetch("open, what is committed beside it", topic, 0, 0, 1<<20, committed)
	x.end("aborting", false)
	eventually(p.t, "the marker", func() error { return p.settled(topic, 4) })
	p.fetch("aborted", topic, 0, 0, 1<<20, committed)
	p.fetch("aborted, behind", topic, 0, 2, 1<<20, committed)
	x.add("adding again", topic, 0)
	x.append("appending again", topic, 2, "d")
	x.end("committing", true)
	eventually(p.t, "the marker", func() error { return p.settled(topic, 6) })
	x.end("committing again", true)
	x.end("aborting what is committed", false)
	p.fetch("committed", topic, 0, 0, 1<<20, committed)

	group := p.name("g")
	x.addGroup("adding offsets", group)
	x.commitOffset("committing offsets", group, topic, 0, 5)
	p.fetchOffset("offsets of an open transaction", group, topic, 0)
	x.end("committing the offsets", true)
	eventually(p.t, "the group's marker", func() error { return p.hasOffset(group, topic) })
	p.fetchOffset("offsets of the transaction", group, topic, 0)
}

// settled reports whether all up to an offset belongs to no open transaction.
func (p *peer) settled(topic string, end int64) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, 1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Timestamp, part.CurrentLeaderEpoch = -1, -1
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(p.t.Context(), p.client)
	if err != nil {
		return err
	}
	if got := resp.Topics[0].Partitions[0].Offset; got < end {
		return fmt.Errorf("committed up to %d, want %d", got, end)
	}
	return nil
}

func (p *peer) hasOffset(group, topic string) error {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = group, true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.Partitions = topic, []int32{0}
	g.Topics = append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(p.t.Context(), p.client)
	if err != nil {
		return err
	}
	if got := resp.Groups[0].Topics[0].Partitions[0]; got.Offset < 0 {
		return fmt.Errorf("offset %d, error %d", got.Offset, got.ErrorCode)
	}
	return nil
}

func askFencing(p *peer) {
	p.client = p.oldClient()
	topic := p.topic("t", 1)
	p.initProducer(p.client, "an empty id", new(""))
	long := p.name("long")
	p.initProducer(p.client, "too long a time", &long, func(r *kmsg.InitProducerIDRequest) { r.TransactionTimeoutMillis = 1 << 30 })
	p.initProducer(p.client, "no time", &long, func(r *kmsg.InitProducerIDRequest) { r.TransactionTimeoutMillis = 0 })

	old := p.newTxn(p.client, "x")
	old.add("adding", topic, 0)
	old.append("appending", topic, 0, "a")
	next := p.newTxn(p.client, "x") // aborts what the former left open
	eventually(p.t, "the marker", func() error { return p.settled(topic, 2) })
	old.append("of the former", topic, 1, "b")
	old.add("adding as the former", topic, 0)
	old.end("ending as the former", true)
	p.initProducer(p.client, "the former goes on", &old.id, func(r *kmsg.InitProducerIDRequest) { r.ProducerID, r.ProducerEpoch = old.pid, old.epoch })
	next.add("adding as the next", topic, 0)
	next.append("appending as the next", topic, 0, "c")
	next.end("ending as the next", true)
	eventually(p.t, "the marker", func() error { return p.settled(topic, 4) })
	bumped := p.initProducer(p.client, "the next goes on", &next.id, func(r *kmsg.InitProducerIDRequest) { r.ProducerID, r.ProducerEpoch = next.pid, next.epoch })
	p.say("its epoch rose by", fmt.Sprint(bumped.ProducerEpoch-next.epoch))
	foreign := *next
	foreign.pid += 1_000_000
	foreign.add("with another's id", topic, 0)
	foreign.end("ending with another's id", true)
	unknown := *next
	unknown.id = p.name("unknown")
	unknown.end("ending what nobody began", true)
	p.fetch("what was stored", topic, 0, 0, 1<<20, func(r *kmsg.FetchRequest) { r.IsolationLevel = 1 })
}

// askCountingAnew is of version 2 of the protocol of transactions.
func askCountingAnew(p *peer) {
	topic := p.topic("t", 1)
	x := p.newTxn(p.client, "x")
	x.append("a first batch that is not the first", topic, 1, "b")
	x.append("the first", topic, 0, "a")
	x.append("the second", topic, 1, "b")
	next := x.at(x.end("committing", true).ProducerEpoch)
	eventually(p.t, "the marker", func() error { return p.settled(topic, 3) })
	x.end("committing again", true)
	x.end("aborting what is committed", false)
	begun := p.initProducer(p.client, "beginning anew", &x.id)
	next.end("committing as before the beginning", true)
	next.end("aborting as before the beginning", false)
	x.pid, x.epoch = begun.ProducerID, begun.ProducerEpoch
	x.append("a first batch that is not the first, once more", topic, 2, "c")
	x.append("the first, once more", topic, 0, "c")
	x.end("aborting", false)
	eventually(p.t, "the marker", func() error { return p.settled(topic, 5) })
	p.fetch("what was stored", topic, 0, 0, 1<<20)
}
