package kafka

import (
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// fetchRequest is a Fetch request, without what concerns replicas.
type fetchRequest struct {
	maxWait       time.Duration
	minBytes      int
	maxBytes      int
	readCommitted bool
	byID          bool // topics are named by their ids
	session       int32
	sessionEpoch  int32
	topics        []fetchTopic
	forgotten     []fetchTopic // of whose partitions only the index is set
	rack          string       // of the client; empty if it does not say
	near          []int32      // the nodes in that rack, as far as the client can reach them
}

// fetchTopic is a topic of a fetch. A request that names topics by id has only
// that; the name is looked up.
type fetchTopic struct {
	id         metadata.StreamID
	name       string
	partitions []fetchPartition
}

type fetchPartition struct {
	index       int32
	leaderEpoch int32 // -1: not checked
	offset      int64
	lastEpoch   int32 // epoch of the record before offset; -1: not checked
	maxBytes    int
}

// decodeFetch reads versions 4 to 18.
func decodeFetch(version int16, body []byte) (fetchRequest, error) {
	w := wire{b: body, flexible: version >= 12}
	r := w.fetchRequest(version)
	if w.bad || len(w.b) > 0 {
		return fetchRequest{}, errMalformed
	}
	return r, nil
}

func (w *wire) fetchRequest(version int16) fetchRequest {
	if version < 15 {
		w.int32() // replica id
	}
	r := fetchRequest{
		maxWait:      time.Duration(w.int32()) * time.Millisecond,
		minBytes:     int(w.int32()),
		maxBytes:     int(w.int32()),
		byID:         version >= 13,
		sessionEpoch: sessionless,
	}
	r.readCommitted = w.int8() == 1
	if version >= 7 {
		r.session, r.sessionEpoch = w.int32(), w.int32()
	}
	r.topics = make([]fetchTopic, 0, w.array(2))
	for range cap(r.topics) {
		t := decodeTopicName(r.byID, w)
		t.partitions = make([]fetchPartition, 0, w.array(16))
		for range cap(t.partitions) {
			t.partitions = append(t.partitions, decodeFetchPartition(version, w))
		}
		w.tags()
		r.topics = append(r.topics, t)
	}
	if version >= 7 {
		r.forgotten = decodeForgotten(r.byID, w)
	}
	if version >= 11 {
		r.rack = w.string()
	}
	w.tags()
	return r
}

func decodeTopicName(byID bool, w *wire) fetchTopic {
	if byID {
		return fetchTopic{id: w.uuid()}
	}
	return fetchTopic{name: w.string()}
}

func decodeFetchPartition(version int16, w *wire) fetchPartition {
	p := fetchPartition{index: w.int32(), leaderEpoch: -1, lastEpoch: -1}
	if version >= 9 {
		p.leaderEpoch = w.int32()
	}
	p.offset = w.int64()
	if version >= 12 {
		p.lastEpoch = w.int32()
	}
	if version >= 5 {
		w.int64() // log start offset, of followers
	}
	p.maxBytes = int(w.int32())
	w.tags()
	return p
}

// decodeForgotten reads the partitions that the session is to let go of.
func decodeForgotten(byID bool, w *wire) []fetchTopic {
	topics := make([]fetchTopic, 0, w.array(2))
	for range cap(topics) {
		t := decodeTopicName(byID, w)
		t.partitions = make([]fetchPartition, 0, w.array(4))
		for range cap(t.partitions) {
			t.partitions = append(t.partitions, fetchPartition{index: w.int32()})
		}
		w.tags()
		topics = append(topics, t)
	}
	return topics
}
