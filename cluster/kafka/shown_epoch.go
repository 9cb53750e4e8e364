package kafka

import "github.com/daybook-data/daybook/cluster"

// Clients keep a partition's leader epoch by its topic's name, and librdkafka takes no earlier one for it, even of a topic
// that was deleted and made again: its consumers stand still for good (redpanda#30671, franz-go#119). A journal's epoch is
// its term of Raft, which begins anew. So who leads is told under an epoch that begins with the second in which the stream
// was made: no stream has an election a second. The records keep their terms, which are below it, and in requests either is
// understood.

// epochsSince is when the first of these seconds was: 2025-01-01, in Unix seconds.
const epochsSince = 1_735_689_600

// firstEpoch is what a partition's terms are counted from in what clients are told.
func firstEpoch(p *cluster.Partition) int32 {
	return int32(max(0, p.Stream().CreatedMillis/1000-epochsSince))
}

// shownLeader is who leads a partition, under the epoch that clients are told; -1 and -1 if nobody is known.
func shownLeader(p *cluster.Partition) leader {
	id, term := p.Leader()
	if term < 0 {
		return leader{id, term}
	}
	return leader{id, firstEpoch(p) + term}
}

// termOf is the term that a client's epoch means, which it has of the metadata or of a record.
func termOf(p *cluster.Partition, epoch int32) int32 {
	if first := firstEpoch(p); epoch >= first {
		return epoch - first
	}
	return epoch
}
