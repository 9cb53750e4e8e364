package kafka

import "time"

// fetchRequest is a Fetch request, without what concerns replicas, sessions and
// racks: every fetch here is a full one (session id 0 is the answer), so there
// are no forgotten topics to honour.
type fetchRequest struct {
	maxWait       time.Duration
	minBytes      int
	maxBytes      int
	readCommitted bool
	session       int32
	sessionEpoch  int32
	topics        []fetchTopic
}

type fetchTopic struct {
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

// decodeFetch reads versions 4 to 12.
func decodeFetch(version int16, body []byte) (fetchRequest, error) {
	w := wire{b: body, flexible: version >= 12}
	w.int32() // replica id
	r := fetchRequest{
		maxWait:  time.Duration(w.int32()) * time.Millisecond,
		minBytes: int(w.int32()),
		maxBytes: int(w.int32()),
	}
	r.readCommitted = w.int8() == 1
	if version >= 7 {
		r.session, r.sessionEpoch = w.int32(), w.int32()
	}
	r.topics = make([]fetchTopic, 0, w.array(2))
	for range cap(r.topics) {
		t := fetchTopic{name: w.string()}
		t.partitions = make([]fetchPartition, 0, w.array(16))
		for range cap(t.partitions) {
			t.partitions = append(t.partitions, decodeFetchPartition(version, &w))
		}
		w.tags()
		r.topics = append(r.topics, t)
	}
	if version >= 7 {
		for range w.array(2) { // forgotten topics
			w.string()
			for range w.array(4) {
				w.int32()
			}
			w.tags()
		}
	}
	if version >= 11 {
		w.string() // rack
	}
	w.tags()
	if w.bad || len(w.b) > 0 {
		return fetchRequest{}, errMalformed
	}
	return r, nil
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
