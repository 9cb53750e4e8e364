package kafka

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// api is one request's range of versions.
type api struct {
	min, max int16
	// flexibleFrom is the first version with compact lengths and tagged fields.
	flexibleFrom int16
}

func (a api) flexible(version int16) bool { return version >= a.flexibleFrom }

// never is the flexibleFrom of a request that has no flexible version.
const never = 1<<15 - 1

// apis is what ApiVersions answers. Produce is listed from version 0, though
// versions 0 to 2 are refused when used: librdkafka and kcat turn compression
// off silently when a broker does not list version 0.
var apis = map[int16]api{
	int16(kmsg.Produce):                      {0, 13, 9},
	int16(kmsg.Fetch):                        {4, 18, 12},
	int16(kmsg.ListOffsets):                  {1, 11, 6},
	int16(kmsg.Metadata):                     {0, 13, 9},
	int16(kmsg.OffsetCommit):                 {1, 10, 8},
	int16(kmsg.OffsetFetch):                  {1, 10, 6},
	int16(kmsg.FindCoordinator):              {0, 6, 3},
	int16(kmsg.JoinGroup):                    {0, 9, 6},
	int16(kmsg.Heartbeat):                    {0, 4, 4},
	int16(kmsg.LeaveGroup):                   {0, 5, 4},
	int16(kmsg.SyncGroup):                    {0, 5, 4},
	int16(kmsg.DescribeGroups):               {0, 6, 5},
	int16(kmsg.ListGroups):                   {0, 5, 3},
	int16(kmsg.ApiVersions):                  {0, 5, 3},
	int16(kmsg.CreateTopics):                 {0, 7, 5},
	int16(kmsg.DeleteTopics):                 {0, 6, 4},
	int16(kmsg.DeleteRecords):                {0, 2, 2},
	int16(kmsg.InitProducerID):               {0, 5, 2},
	int16(kmsg.OffsetForLeaderEpoch):         {0, 4, 4},
	int16(kmsg.AddPartitionsToTxn):           {0, 5, 3},
	int16(kmsg.AddOffsetsToTxn):              {0, 4, 3},
	int16(kmsg.EndTxn):                       {0, 5, 3},
	int16(kmsg.TxnOffsetCommit):              {0, 5, 3},
	int16(kmsg.DescribeConfigs):              {0, 4, 4},
	int16(kmsg.AlterConfigs):                 {0, 2, 2},
	int16(kmsg.CreatePartitions):             {0, 3, 2},
	int16(kmsg.DeleteGroups):                 {0, 2, 2},
	int16(kmsg.IncrementalAlterConfigs):      {0, 1, 1},
	int16(kmsg.ElectLeaders):                 {0, 2, 2},
	int16(kmsg.AlterPartitionAssignments):    {0, 1, 0},
	int16(kmsg.ListPartitionReassignments):   {0, 0, 0},
	int16(kmsg.OffsetDelete):                 {0, 0, never},
	int16(kmsg.SASLHandshake):                {0, 1, never},
	int16(kmsg.SASLAuthenticate):             {0, 2, 2},
	int16(kmsg.DescribeLogDirs):              {0, 5, 2},
	int16(kmsg.DescribeACLs):                 {0, 3, 2},
	int16(kmsg.CreateACLs):                   {0, 3, 2},
	int16(kmsg.DeleteACLs):                   {0, 3, 2},
	int16(kmsg.DescribeUserSCRAMCredentials): {0, 0, 0},
	int16(kmsg.AlterUserSCRAMCredentials):    {0, 0, 0},
	int16(kmsg.DescribeCluster):              {0, 2, 0},
	int16(kmsg.DescribeTransactions):         {0, 0, 0},
	int16(kmsg.ListTransactions):             {0, 2, 0},
}

// apiKeys returns the keys of apis in order.
func apiKeys() []int16 { return slices.Sorted(maps.Keys(apis)) }

// handler answers one decoded request. A nil response closes the connection.
type handler func(c *call, req kmsg.Request) kmsg.Response

// on turns a handler of one request type into a handler.
func on[Q kmsg.Request](f func(*call, Q) kmsg.Response) handler {
	return func(c *call, req kmsg.Request) kmsg.Response { return f(c, req.(Q)) }
}

// handlers returns what answers each request. Produce and Fetch are not among
// them: they do not go through kmsg (produce.go, fetch.go).
func (s *Server) handlers() map[int16]handler {
	return map[int16]handler{
		int16(kmsg.ListOffsets):                  on(s.listOffsets),
		int16(kmsg.Metadata):                     on(s.metadata),
		int16(kmsg.OffsetCommit):                 on(s.offsetCommit),
		int16(kmsg.OffsetFetch):                  on(s.offsetFetch),
		int16(kmsg.FindCoordinator):              on(s.findCoordinator),
		int16(kmsg.JoinGroup):                    on(s.joinGroup),
		int16(kmsg.Heartbeat):                    on(s.heartbeat),
		int16(kmsg.LeaveGroup):                   on(s.leaveGroup),
		int16(kmsg.SyncGroup):                    on(s.syncGroup),
		int16(kmsg.DescribeGroups):               on(s.describeGroups),
		int16(kmsg.ListGroups):                   on(s.listGroups),
		int16(kmsg.ApiVersions):                  on(s.apiVersions),
		int16(kmsg.CreateTopics):                 on(s.createTopics),
		int16(kmsg.DeleteTopics):                 on(s.deleteTopics),
		int16(kmsg.DeleteRecords):                on(s.deleteRecords),
		int16(kmsg.InitProducerID):               on(s.initProducerID),
		int16(kmsg.OffsetForLeaderEpoch):         on(s.offsetForLeaderEpoch),
		int16(kmsg.AddPartitionsToTxn):           on(s.addPartitionsToTxn),
		int16(kmsg.AddOffsetsToTxn):              on(s.addOffsetsToTxn),
		int16(kmsg.EndTxn):                       on(s.endTxn),
		int16(kmsg.TxnOffsetCommit):              on(s.txnOffsetCommit),
		int16(kmsg.DescribeConfigs):              on(s.describeConfigs),
		int16(kmsg.AlterConfigs):                 on(s.alterConfigs),
		int16(kmsg.CreatePartitions):             on(s.createPartitions),
		int16(kmsg.DeleteGroups):                 on(s.deleteGroups),
		int16(kmsg.IncrementalAlterConfigs):      on(s.incrementalAlterConfigs),
		int16(kmsg.ElectLeaders):                 on(s.electLeaders),
		int16(kmsg.AlterPartitionAssignments):    on(s.alterPartitionAssignments),
		int16(kmsg.ListPartitionReassignments):   on(s.listPartitionReassignments),
		int16(kmsg.OffsetDelete):                 on(s.offsetDelete),
		int16(kmsg.SASLHandshake):                on(s.saslHandshake),
		int16(kmsg.SASLAuthenticate):             on(s.saslAuthenticate),
		int16(kmsg.DescribeLogDirs):              on(s.describeLogDirs),
		int16(kmsg.DescribeACLs):                 on(s.describeACLs),
		int16(kmsg.CreateACLs):                   on(s.createACLs),
		int16(kmsg.DeleteACLs):                   on(s.deleteACLs),
		int16(kmsg.DescribeUserSCRAMCredentials): on(s.describeUserSCRAMCredentials),
		int16(kmsg.AlterUserSCRAMCredentials):    on(s.alterUserSCRAMCredentials),
		int16(kmsg.DescribeCluster):              on(s.describeCluster),
		int16(kmsg.DescribeTransactions):         on(s.describeTransactions),
		int16(kmsg.ListTransactions):             on(s.listTransactions),
	}
}
