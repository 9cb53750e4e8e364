// Package kafka speaks the Kafka wire protocol for a cluster.Node, so that every
// Kafka client and tool works on Daybook's streams.
//
// One file holds one request (or a family of them that share a state). apis.go
// lists what is offered in which versions: nothing stands there that is not real.
//
// # Order on a connection
//
// A connection has two goroutines. The reader takes frames off the wire and
// starts produce requests at once, so that several of them share one write to
// disk, in the order in which they came: that is what an idempotent producer
// with five requests in flight relies on. The writer runs all other requests,
// and writes every answer in the order of the requests.
//
// # Memory
//
// A frame's bytes are charged to the connection and to the server before they
// are read and given back when the request is done. Record bytes are never
// copied on the heap: a produce request's batches are written to disk out of the
// buffer they were read into, and a fetch is answered out of the journal's files.
//
// # Several nodes
//
// A server answers for its node, and says of everything else who does: brokers are the
// cluster's members at the addresses of the listener through which the client came
// (brokers.go), leaders and epochs what the node knows (leaders.go), groups and
// transactions are coordinated by the node that leads the metadata (coordinate.go). What
// changes the metadata can be asked of any node. Why no batch can land behind the marker
// of its transaction is written at txnCoordinator.
//
// # Who may do what
//
// Each listener has an Access: how its clients prove who they are. A client that must
// log in is answered nothing else before (login.go). Handlers ask call.topic, group,
// txn and cluster, which know Kafka's operations, and are told the error to answer;
// the ACLs are the metadata's (authorize.go). Connections within the process and over
// the socket in the data folder are the operator's, of whom no ACL is asked.
//
// # Locks
//
// Server.mu guards the set of connections, fetchSessions.mu the fetch sessions. Neither
// is held together with another lock, or during I/O.
package kafka
