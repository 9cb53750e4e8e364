package kafka_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// guarded is a broker that asks ACLs: of everybody who comes by its TCP address.
func guarded(t *testing.T) *broker {
	b := newBroker(t, true, func(_ *cluster.Options, k *kafka.Options) {
		k.Authorize, k.SuperUsers = true, []string{"User:root"}
	})
	b.user("ann", "secret")
	b.user("root", "secret")
	b.addr = b.also(kafka.Access{Mechanisms: allMechanisms})
	return b
}

// as returns a client that logs in as a user.
func (b *broker) as(user string, opts ...kgo.Opt) *kgo.Client {
	return b.at(b.addr, append(opts, kgo.SASL(mechanisms(user, "secret")[kafka.MechanismScramSHA256]))...)
}

// acl adds one ACL, of the form that tests write.
func (b *broker) acl(permission string, principal string, op kmsg.ACLOperation, kind kmsg.ACLResourceType, pattern kmsg.ACLResourcePatternType, name string) {
	b.t.Helper()
	err := b.node.CreateACLs(b.t.Context(), []metadata.ACL{{
		Resource: kind.String(), Name: name, Pattern: pattern.String(), Principal: principal, Host: "*",
		Operation: op.String(), Permission: permission,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}

const (
	literal  = kmsg.ACLResourcePatternTypeLiteral
	prefixed = kmsg.ACLResourcePatternTypePrefixed
)

func (b *broker) allow(op kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) {
	b.acl("ALLOW", "User:ann", op, kind, literal, name)
}

// asked is a request, and the first error of its answer.
type asked struct {
	name string
	req  kmsg.Request
	code func(kmsg.Response) int16
	want *kerr.Error
	// need is all that it needs.
	need []need
}

type need struct {
	op   kmsg.ACLOperation
	kind kmsg.ACLResourceType
	name string
}

// The table is Kafka's: which operation on which resource a request needs, and what
// who lacks it hears.
func requestTable(b *broker) []asked {
	topic := func(op kmsg.ACLOperation) need { return need{op, kmsg.ACLResourceTypeTopic, "t"} }
	group := func(op kmsg.ACLOperation) need { return need{op, kmsg.ACLResourceTypeGroup, "g"} }
	txn := func(op kmsg.ACLOperation) need { return need{op, kmsg.ACLResourceTypeTransactionalId, "x"} }
	whole := func(op kmsg.ACLOperation) need { return need{op, kmsg.ACLResourceTypeCluster, "kafka-cluster"} }
	id := b.topicID("t")
	return []asked{
		{"Produce", &kmsg.ProduceRequest{Acks: -1, TimeoutMillis: 5000, Topics: []kmsg.ProduceRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: plainBatch("a")}}}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationWrite)}},
		{"Fetch", &kmsg.FetchRequest{MaxBytes: 1 << 20, SessionEpoch: -1, Topics: []kmsg.FetchRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{{CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, PartitionMaxBytes: 1 << 20}}}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationRead)}},
		{"ListOffsets", &kmsg.ListOffsetsRequest{Topics: []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationDescribe)}},
		{"Metadata", &kmsg.MetadataRequest{Topics: []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("t")}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.MetadataResponse).Topics[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationDescribe)}},
		{"Metadata by id", &kmsg.MetadataRequest{Topics: []kmsg.MetadataRequestTopic{{TopicID: id}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.MetadataResponse).Topics[0].ErrorCode },
			kerr.UnknownTopicID, []need{topic(kmsg.ACLOperationDescribe)}},
		{"Metadata that creates", &kmsg.MetadataRequest{AllowAutoTopicCreation: true, Topics: []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("new")}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.MetadataResponse).Topics[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{{kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, "new"}, {kmsg.ACLOperationCreate, kmsg.ACLResourceTypeTopic, "new"}}},
		{"OffsetForLeaderEpoch", &kmsg.OffsetForLeaderEpochRequest{ReplicaID: -1, Topics: []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: -1}}}}},
			func(r kmsg.Response) int16 {
				return r.(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0].ErrorCode
			},
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationDescribe)}},
		{"OffsetCommit, group", &kmsg.OffsetCommitRequest{Group: "g", Generation: -1, Topics: []kmsg.OffsetCommitRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationRead), topic(kmsg.ACLOperationRead)}},
		{"OffsetFetch", &kmsg.OffsetFetchRequest{Groups: []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberEpoch: -1}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.OffsetFetchResponse).Groups[0].ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationDescribe)}},
		{"FindCoordinator, group", &kmsg.FindCoordinatorRequest{CoordinatorKeys: []string{"g"}},
			func(r kmsg.Response) int16 { return r.(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationDescribe)}},
		{"FindCoordinator, transactional id", &kmsg.FindCoordinatorRequest{CoordinatorType: 1, CoordinatorKeys: []string{"x"}},
			func(r kmsg.Response) int16 { return r.(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode },
			kerr.TransactionalIDAuthorizationFailed, []need{txn(kmsg.ACLOperationDescribe)}},
		{"DescribeGroups", &kmsg.DescribeGroupsRequest{Groups: []string{"g"}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationDescribe)}},
		{"Heartbeat", &kmsg.HeartbeatRequest{Group: "g"}, func(r kmsg.Response) int16 { return r.(*kmsg.HeartbeatResponse).ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationRead)}},
		{"JoinGroup", &kmsg.JoinGroupRequest{Group: "g", SessionTimeoutMillis: 6000}, func(r kmsg.Response) int16 { return r.(*kmsg.JoinGroupResponse).ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationRead)}},
		{"SyncGroup", &kmsg.SyncGroupRequest{Group: "g"}, func(r kmsg.Response) int16 { return r.(*kmsg.SyncGroupResponse).ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationRead)}},
		{"LeaveGroup", &kmsg.LeaveGroupRequest{Group: "g"}, func(r kmsg.Response) int16 { return r.(*kmsg.LeaveGroupResponse).ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationRead)}},
		{"OffsetDelete", &kmsg.OffsetDeleteRequest{Group: "g"}, func(r kmsg.Response) int16 { return r.(*kmsg.OffsetDeleteResponse).ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationDelete)}},
		{"DeleteGroups", &kmsg.DeleteGroupsRequest{Groups: []string{"g"}}, func(r kmsg.Response) int16 { return r.(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode },
			kerr.GroupAuthorizationFailed, []need{group(kmsg.ACLOperationDelete)}},
		{"InitProducerID", &kmsg.InitProducerIDRequest{ProducerID: -1, ProducerEpoch: -1}, func(r kmsg.Response) int16 { return r.(*kmsg.InitProducerIDResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationIdempotentWrite)}},
		{"InitProducerID, transactional", &kmsg.InitProducerIDRequest{TransactionalID: kmsg.StringPtr("x"), TransactionTimeoutMillis: 1000, ProducerID: -1, ProducerEpoch: -1},
			func(r kmsg.Response) int16 { return r.(*kmsg.InitProducerIDResponse).ErrorCode },
			kerr.TransactionalIDAuthorizationFailed, []need{txn(kmsg.ACLOperationWrite)}},
		{"AddOffsetsToTxn", &kmsg.AddOffsetsToTxnRequest{TransactionalID: "x", Group: "g"}, func(r kmsg.Response) int16 { return r.(*kmsg.AddOffsetsToTxnResponse).ErrorCode },
			kerr.TransactionalIDAuthorizationFailed, []need{txn(kmsg.ACLOperationWrite), group(kmsg.ACLOperationRead)}},
		{"EndTxn", &kmsg.EndTxnRequest{TransactionalID: "x"}, func(r kmsg.Response) int16 { return r.(*kmsg.EndTxnResponse).ErrorCode },
			kerr.TransactionalIDAuthorizationFailed, []need{txn(kmsg.ACLOperationWrite)}},
		{"TxnOffsetCommit", &kmsg.TxnOffsetCommitRequest{TransactionalID: "x", Group: "g", Generation: -1, Topics: []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 1}}}}},
			func(r kmsg.Response) int16 {
				return r.(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
			},
			kerr.TransactionalIDAuthorizationFailed, []need{txn(kmsg.ACLOperationWrite), group(kmsg.ACLOperationRead), topic(kmsg.ACLOperationRead)}},
		{"AddPartitionsToTxn of a broker", &kmsg.AddPartitionsToTxnRequest{Transactions: []kmsg.AddPartitionsToTxnRequestTransaction{{TransactionalID: "x"}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.AddPartitionsToTxnResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationClusterAction)}},
		{"DescribeTransactions", &kmsg.DescribeTransactionsRequest{TransactionalIDs: []string{"x"}},
			func(r kmsg.Response) int16 {
				return r.(*kmsg.DescribeTransactionsResponse).TransactionStates[0].ErrorCode
			},
			kerr.TransactionalIDAuthorizationFailed, []need{txn(kmsg.ACLOperationDescribe)}},
		{"CreateTopics", &kmsg.CreateTopicsRequest{Topics: []kmsg.CreateTopicsRequestTopic{{Topic: "made", NumPartitions: 1, ReplicationFactor: 1}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{{kmsg.ACLOperationCreate, kmsg.ACLResourceTypeTopic, "made"}}},
		{"CreatePartitions", &kmsg.CreatePartitionsRequest{Topics: []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 2}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationAlter)}},
		{"DescribeConfigs, topic", &kmsg.DescribeConfigsRequest{Resources: []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DescribeConfigsResponse).Resources[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationDescribeConfigs)}},
		{"DescribeConfigs, broker", &kmsg.DescribeConfigsRequest{Resources: []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DescribeConfigsResponse).Resources[0].ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationDescribeConfigs)}},
		{"AlterConfigs", &kmsg.AlterConfigsRequest{Resources: []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.AlterConfigsResponse).Resources[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationAlterConfigs)}},
		{"IncrementalAlterConfigs", &kmsg.IncrementalAlterConfigsRequest{Resources: []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "t"}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationAlterConfigs)}},
		{"DescribeACLs", &kmsg.DescribeACLsRequest{ResourceType: 1, ResourcePatternType: 1, Operation: 1, PermissionType: 1},
			func(r kmsg.Response) int16 { return r.(*kmsg.DescribeACLsResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationDescribe)}},
		{"CreateACLs", &kmsg.CreateACLsRequest{Creations: []kmsg.CreateACLsRequestCreation{{ResourceType: 2, ResourceName: "z", ResourcePatternType: 3, Principal: "User:z", Host: "*", Operation: 3, PermissionType: 3}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.CreateACLsResponse).Results[0].ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationAlter)}},
		{"DeleteACLs", &kmsg.DeleteACLsRequest{Filters: []kmsg.DeleteACLsRequestFilter{{ResourceType: 2, ResourceName: kmsg.StringPtr("z"), ResourcePatternType: 3, Operation: 1, PermissionType: 1}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DeleteACLsResponse).Results[0].ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationAlter)}},
		{"DescribeLogDirs", &kmsg.DescribeLogDirsRequest{}, func(r kmsg.Response) int16 { return r.(*kmsg.DescribeLogDirsResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationDescribe)}},
		{"ElectLeaders", &kmsg.ElectLeadersRequest{Version: 2, TimeoutMillis: 1000}, func(r kmsg.Response) int16 { return r.(*kmsg.ElectLeadersResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationAlter)}},
		{"AlterPartitionAssignments", &kmsg.AlterPartitionAssignmentsRequest{TimeoutMillis: 1000}, func(r kmsg.Response) int16 { return r.(*kmsg.AlterPartitionAssignmentsResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationAlter)}},
		{"ListPartitionReassignments", &kmsg.ListPartitionReassignmentsRequest{TimeoutMillis: 1000}, func(r kmsg.Response) int16 { return r.(*kmsg.ListPartitionReassignmentsResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationDescribe)}},
		{"DescribeUserSCRAMCredentials", &kmsg.DescribeUserSCRAMCredentialsRequest{}, func(r kmsg.Response) int16 { return r.(*kmsg.DescribeUserSCRAMCredentialsResponse).ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationDescribe)}},
		{"AlterUserSCRAMCredentials", &kmsg.AlterUserSCRAMCredentialsRequest{Upsertions: []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{{Name: "z", Mechanism: 1, Iterations: 4096, Salt: []byte("s"), SaltedPassword: make([]byte, 32)}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.AlterUserSCRAMCredentialsResponse).Results[0].ErrorCode },
			kerr.ClusterAuthorizationFailed, []need{whole(kmsg.ACLOperationAlter)}},
		{"DeleteRecords", &kmsg.DeleteRecordsRequest{TimeoutMillis: 1000, Topics: []kmsg.DeleteRecordsRequestTopic{{Topic: "t", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: 0}}}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationDelete)}},
		{"DeleteTopics", &kmsg.DeleteTopicsRequest{TimeoutMillis: 1000, Topics: []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("t")}}},
			func(r kmsg.Response) int16 { return r.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode },
			kerr.TopicAuthorizationFailed, []need{topic(kmsg.ACLOperationDelete)}},
	}
}

// denials are the codes of all refusals by an ACL.
var denials = []int16{
	kerr.TopicAuthorizationFailed.Code, kerr.GroupAuthorizationFailed.Code,
	kerr.ClusterAuthorizationFailed.Code, kerr.TransactionalIDAuthorizationFailed.Code,
}

func TestEveryRequestNeedsWhatItNeedsInKafka(t *testing.T) {
	b := guarded(t)
	b.topic("t", 1, nil)
	c := b.as("ann")
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := func(a asked) int16 {
		t.Helper()
		resp, err := c.Broker(1).Request(t.Context(), a.req) // as it is: else the client asks for metadata first
		if err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		return a.code(resp)
	}
	for _, a := range requestTable(b) {
		if code := ask(a); code != a.want.Code {
			t.Errorf("%s without any ACL: %v, want %s", a.name, kerr.ErrorForCode(code), a.want.Message)
		}
		for i, n := range a.need {
			if i > 0 { // what is allowed so far is not enough
				if code := ask(a); !slices.Contains(denials, code) {
					t.Errorf("%s without %v on %s: %v, want a refusal", a.name, n.op, n.name, kerr.ErrorForCode(code))
				}
			}
			b.allow(n.op, n.kind, n.name)
		}
		if code := ask(a); slices.Contains(denials, code) || code == kerr.UnknownTopicID.Code {
			t.Errorf("%s with all that it needs: %v", a.name, kerr.ErrorForCode(code))
		}
		acls, _ := b.node.Meta().ACLs()
		if err := b.node.DeleteACLs(t.Context(), acls); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range offeredKeys(t, b) { // the table leaves no request out
		exempt := []string{"ApiVersions", "SASLHandshake", "SASLAuthenticate", "DescribeCluster", "ListGroups", "ListTransactions"}
		covered := slices.ContainsFunc(requestTable(b), func(a asked) bool { return a.req.Key() == key })
		if name := kmsg.NameForKey(key); !covered && !slices.Contains(exempt, name) {
			t.Errorf("%s is offered, and its ACLs are not tested", name)
		}
	}
}

func offeredKeys(t *testing.T, b *broker) []int16 {
	t.Helper()
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), b.client())
	if err != nil {
		t.Fatal(err)
	}
	var keys []int16
	for _, k := range resp.ApiKeys {
		keys = append(keys, k.ApiKey)
	}
	return keys
}

func TestListsLeaveOutWhatMayNotBeSeen(t *testing.T) {
	b := guarded(t)
	for _, name := range []string{"mine", "theirs"} {
		b.topic(name, 1, nil)
		if _, err := b.admin().CommitOffsets(t.Context(), name, kadm.OffsetsFromRecords(kgo.Record{Topic: name})); err != nil {
			t.Fatal(err)
		}
		inTxn(t, b.client(kgo.TransactionalID(name), kgo.DefaultProduceTopic(name)), kgo.TryCommit, "a")
	}
	seen := func(user string) string {
		t.Helper()
		admin := kadm.NewClient(b.as(user))
		topics, err := admin.ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		groups, err := admin.ListGroups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		txns, err := admin.ListTransactions(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(topics.Names(), groups.Groups(), txns.TransactionalIDs())
	}
	if got := seen("ann"); got != "[] [] []" {
		t.Errorf("ann sees %s, want nothing", got)
	}
	for _, kind := range []kmsg.ACLResourceType{kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeGroup, kmsg.ACLResourceTypeTransactionalId} {
		b.allow(kmsg.ACLOperationDescribe, kind, "mine")
	}
	if got := seen("ann"); got != "[mine] [mine] [mine]" {
		t.Errorf("ann sees %s, want what is hers", got)
	}
	if got, want := seen("root"), "[mine theirs] [mine theirs] [mine theirs]"; got != want {
		t.Errorf("a super user sees %s, want %s", got, want)
	}
	fetched, err := kadm.NewClient(b.as("ann")).FetchOffsets(t.Context(), "mine")
	if err != nil || len(fetched) != 1 {
		t.Errorf("ann's group has %v, %v", fetched, err)
	}
	// What may not be seen can't be read by a group's offsets either.
	b.allow(kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, "theirs")
	if fetched, err := kadm.NewClient(b.as("ann")).FetchOffsets(t.Context(), "theirs"); err != nil || len(fetched) != 0 {
		t.Errorf("another group's offsets are %v, %v; want none", fetched, err)
	}
}

func TestDenyBeatsAllowAndPatternsMatchAsInKafka(t *testing.T) {
	b := guarded(t)
	for _, name := range []string{"app.a", "app.b", "application", "other"} {
		b.topic(name, 1, nil)
	}
	c := b.as("ann")
	check := func(what string, want map[string]bool) {
		t.Helper()
		for topic, may := range want {
			err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr()
			if may && err != nil || !may && !errors.Is(err, kerr.TopicAuthorizationFailed) {
				t.Errorf("%s: writing to %s: %v, want allowed %v", what, topic, err, may)
			}
		}
	}
	write, topic := kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic
	b.acl("ALLOW", "User:bob", write, topic, literal, "*")
	check("somebody else's", map[string]bool{"app.a": false, "other": false})
	b.acl("ALLOW", "User:ann", write, topic, prefixed, "app.")
	check("a prefix", map[string]bool{"app.a": true, "app.b": true, "application": false, "other": false})
	b.acl("DENY", "User:ann", write, topic, literal, "app.b")
	check("a denied name", map[string]bool{"app.a": true, "app.b": false})
	b.acl("ALLOW", "User:*", write, topic, literal, "*")
	check("everybody, everything", map[string]bool{"app.a": true, "app.b": false, "application": true, "other": true})
	b.acl("DENY", "User:*", kmsg.ACLOperationAll, topic, prefixed, "app")
	check("everything denied by a prefix", map[string]bool{"app.a": false, "application": false, "other": true})
	b.acl("DENY", "User:ann", kmsg.ACLOperationDescribe, topic, literal, "other")
	admin := kadm.NewClient(c)
	if listed, err := admin.ListTopics(t.Context()); err != nil || listed.Has("other") {
		t.Errorf("a topic that may not be described is listed: %v, %v", listed.Names(), err)
	}
	if err := b.as("root").ProduceSync(t.Context(), &kgo.Record{Topic: "app.a"}).FirstErr(); err != nil {
		t.Errorf("a super user is denied: %v", err)
	}
}

// A prefixed ACL whose name is * is about names that begin with *, as in Kafka.
func TestPrefixedStarIsNoWildcard(t *testing.T) {
	b := guarded(t)
	b.topic("t", 1, nil)
	b.acl("ALLOW", "User:ann", kmsg.ACLOperationAll, kmsg.ACLResourceTypeTopic, prefixed, "*")
	if err := b.as("ann").ProduceSync(t.Context(), &kgo.Record{Topic: "t"}).FirstErr(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("writing: %v, want TOPIC_AUTHORIZATION_FAILED", err)
	}
}

func TestACLsAreListedAndDeletedByFilters(t *testing.T) {
	b := guarded(t)
	admin := kadm.NewClient(b.as("root"))
	build := kadm.NewACLs().Topics("app.a").Groups("g").Allow("User:ann").AllowHosts("*").Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral)
	if created, err := admin.CreateACLs(t.Context(), build); err != nil || len(created) != 2 || created[0].Err != nil || created[1].Err != nil {
		t.Fatalf("creating: %+v, %v", created, err)
	}
	if _, err := admin.CreateACLs(t.Context(), kadm.NewACLs().Topics("app").Deny("User:bob").DenyHosts("10.0.0.1").Operations(kadm.OpAll).ResourcePatternType(kadm.ACLPatternPrefixed)); err != nil {
		t.Fatal(err)
	}
	b.restart() // ACLs are in the metadata
	b.addr = b.also(kafka.Access{Mechanisms: allMechanisms})
	admin = kadm.NewClient(b.as("root"))
	count := func(filter *kadm.ACLBuilder) int {
		t.Helper()
		described, err := admin.DescribeACLs(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, d := range described {
			n += len(d.Described)
		}
		return n
	}
	anyone := func() *kadm.ACLBuilder { return kadm.NewACLs().Allow().AllowHosts().Deny().DenyHosts().Operations() }
	if n := count(anyone().AnyResource().ResourcePatternType(kadm.ACLPatternAny)); n != 3 {
		t.Errorf("%d ACLs are there, want 3", n)
	}
	if n := count(anyone().Topics("app.a").ResourcePatternType(kadm.ACLPatternMatch)); n != 2 {
		t.Errorf("%d ACLs match app.a, want 2: its own and the prefix", n)
	}
	if n := count(anyone().Topics("app.a").ResourcePatternType(kadm.ACLPatternAny)); n != 1 {
		t.Errorf("%d ACLs are named app.a, want 1", n)
	}
	deleted, err := admin.DeleteACLs(t.Context(), anyone().Topics("app.a").ResourcePatternType(kadm.ACLPatternMatch))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range deleted {
		n += len(d.Deleted)
	}
	if acls, _ := b.node.Meta().ACLs(); n != 2 || len(acls) != 1 {
		t.Errorf("%d were deleted and %d are left, want 2 and 1", n, len(acls))
	}
}

func TestACLsWithoutAuthorizationAreRefused(t *testing.T) {
	b := newBroker(t, false)
	req := kmsg.NewPtrCreateACLsRequest()
	creation := kmsg.NewCreateACLsRequestCreation()
	creation.ResourceType, creation.ResourceName, creation.Principal, creation.Host, creation.Operation, creation.PermissionType = 2, "t", "User:a", "*", 3, 3
	req.Creations = append(req.Creations, creation)
	resp, err := req.RequestWith(t.Context(), b.client())
	if err != nil || resp.Results[0].ErrorCode != kerr.SecurityDisabled.Code {
		t.Errorf("got %+v, %v; want SECURITY_DISABLED", resp, err)
	}
}
