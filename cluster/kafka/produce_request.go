package kafka

import (
	"github.com/daybook-data/daybook/cluster/metadata"
)

// produceRequest is a Produce request whose records are parts of its frame.
type produceRequest struct {
	transactionalID *string
	acks            int16
	timeoutMillis   int32
	topics          []produceTopic
	denied          error // the client may not use the transactional id
}

// produceTopic is named by its id from version 13 on; the name is looked up.
type produceTopic struct {
	id         metadata.StreamID
	name       string
	partitions []producePartition
	denied     error // the client may not write to it
}

type producePartition struct {
	index   int32
	records []byte
}

// decodeProduce reads versions 0 to 13. known is the name that a topic probably has.
func decodeProduce(version int16, body []byte, known string) (produceRequest, error) {
	w := wire{b: body, flexible: version >= 9}
	var r produceRequest
	if version >= 3 {
		r.transactionalID = w.nullableString()
	}
	r.acks, r.timeoutMillis = w.int16(), w.int32()
	// A topic takes at least two lengths, a partition its number and a length.
	r.topics = make([]produceTopic, 0, w.array(2))
	for range cap(r.topics) {
		var t produceTopic
		if version >= 13 {
			t.id = w.uuid()
		} else {
			t.name = orKnown(w.take(w.length(true)), known)
		}
		t.partitions = make([]producePartition, 0, w.array(5))
		for range cap(t.partitions) {
			t.partitions = append(t.partitions, producePartition{w.int32(), w.bytes()})
			w.tags()
		}
		w.tags()
		r.topics = append(r.topics, t)
	}
	w.tags()
	if w.bad || len(w.b) > 0 {
		return produceRequest{}, errMalformed
	}
	return r, nil
}
