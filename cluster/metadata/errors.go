package metadata

import "errors"

// Refusals of the metadata. They come wrapped; compare with errors.Is.
var (
	// ErrStreamExists: the name is taken.
	ErrStreamExists = errors.New("stream already exists")
	// ErrStreamNameCollides: another name differs only in '.' and '_'.
	ErrStreamNameCollides = errors.New("stream name collides with another one that differs only in '.' and '_'")
	// ErrUnknownStream: no such stream, or it is being deleted.
	ErrUnknownStream = errors.New("unknown stream")
	// ErrUnknownPartition: the stream has fewer partitions.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrStreamInUse: a stream is forgotten only after it was deleted.
	ErrStreamInUse = errors.New("stream is not being deleted")
	// ErrNotMorePartitions: a stream can only grow.
	ErrNotMorePartitions = errors.New("stream has that many partitions already")
	// ErrInvalidStream: a name, a count or a setting is out of bounds.
	ErrInvalidStream = errors.New("invalid stream")
	// ErrInvalidConfig: a setting is unknown or its value is.
	ErrInvalidConfig = errors.New("invalid stream setting")
	// ErrUnknownGroup: the group has no offsets.
	ErrUnknownGroup = errors.New("unknown group")
	// ErrUnknownTransaction: no transactional id of that name.
	ErrUnknownTransaction = errors.New("unknown transactional id")
	// ErrProducerFenced: a newer incarnation of the producer exists.
	ErrProducerFenced = errors.New("producer is fenced by a newer one")
	// ErrTransactionState: the transaction is not in a state that allows this.
	ErrTransactionState = errors.New("transaction is in another state")
	// ErrConflict: somebody else changed the transaction; read it and try again.
	ErrConflict = errors.New("changed meanwhile")
	// ErrInvalidReplication: more replicas are asked for than there are nodes, or none.
	ErrInvalidReplication = errors.New("invalid number of replicas")
	// ErrNotCoordinator: this node does not lead the metadata any more, or under
	// another epoch.
	ErrNotCoordinator = errors.New("this node does not coordinate any more")
	// ErrUnknownMember: no such node is in the cluster.
	ErrUnknownMember = errors.New("unknown node")
	// ErrMemberInUse: the node still has replicas.
	ErrMemberInUse = errors.New("node still has replicas")
	// ErrRemoved: this node was taken out of its cluster.
	ErrRemoved = errors.New("this node was taken out of the cluster")
)
