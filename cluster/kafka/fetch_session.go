package kafka

import (
	"container/list"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// A client's session epoch says what it wants: 0 a session, -1 none, and above
// that it is the number of the fetch within its session (KIP-227).
const (
	newSession  int32 = 0
	sessionless int32 = -1
)

// Bounds of the cache. A client that gets no session (id 0) names all its
// partitions in every fetch, as before there were sessions.
const (
	maxSessions          = 1000
	maxSessionPartitions = 500_000 // of all sessions together, some 150 bytes each
	// sessionEviction is how long a session is safe from larger ones, and after how
	// long without a fetch it makes room for any.
	sessionEviction = 2 * time.Minute
)

// fetchSessions remembers what clients fetch, so that a fetch names only the
// partitions that change and an answer only those that have something. It is
// safe for concurrent use.
type fetchSessions struct {
	max int // sessions
	now func() time.Time
	// topicName resolves a topic's id; empty if there is none.
	topicName func(metadata.StreamID) string

	mu         sync.Mutex
	sessions   map[int32]*fetchSession
	partitions int // of all sessions
}

// fetchSession is one client's session; fetchSessions.mu guards it.
type fetchSession struct {
	id            int32
	byID          bool
	epoch         int32 // of the next fetch
	created, used time.Time
	entries       map[entryKey]*list.Element
	order         *list.List // of *sessionEntry; what was served last stands last
}

// entryKey names a partition as the client does.
type entryKey struct {
	id        metadata.StreamID
	name      string // empty in sessions that go by ids
	partition int32
}

func keyOf(t fetchTopic, partition int32) entryKey {
	if t.id != (metadata.StreamID{}) {
		return entryKey{id: t.id, partition: partition}
	}
	return entryKey{name: t.name, partition: partition}
}

// sessionEntry is a partition of a session. Its name is the one that its id had
// when it was added: if the topic is deleted and made anew meanwhile, the id does
// not fit any more.
type sessionEntry struct {
	key  entryKey
	name string
	fetchPartition
	highWatermark, start int64 // last answered; -1: answer whatever it is
}

func newFetchSessions(max int, topicName func(metadata.StreamID) string) *fetchSessions {
	return &fetchSessions{max: max, now: time.Now, topicName: topicName, sessions: map[int32]*fetchSession{}}
}

// fetchPlan is what one fetch reads, and in which session.
type fetchPlan struct {
	topics []fetchTopic
	// session is 0 if there is none, or none yet. epoch is the one that the request
	// had: newSession asks for a session, a later one belongs to session.
	session, epoch int32
	byID           bool
}

// begin finds out what a fetch asks for. An error ends the fetch with its code
// alone.
func (s *fetchSessions) begin(r *fetchRequest) (fetchPlan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolve(r.topics)
	if r.sessionEpoch == newSession || r.sessionEpoch == sessionless {
		if session, ok := s.sessions[r.session]; ok {
			s.remove(session)
		}
		return fetchPlan{topics: r.topics, epoch: r.sessionEpoch, byID: r.byID}, nil
	}
	session, ok := s.sessions[r.session]
	switch {
	case !ok:
		return fetchPlan{}, kerr.FetchSessionIDNotFound
	case session.epoch != r.sessionEpoch:
		return fetchPlan{}, kerr.InvalidFetchSessionEpoch
	case session.byID != r.byID:
		return fetchPlan{}, kerr.FetchSessionTopicIDError
	}
	if !s.update(session, r) {
		s.remove(session)
		return fetchPlan{}, kerr.FetchSessionIDNotFound // the client starts anew, and gets none
	}
	if session.order.Len() == 0 {
		s.remove(session)
		return fetchPlan{epoch: sessionless}, nil
	}
	session.used, session.epoch = s.now(), nextSessionEpoch(r.sessionEpoch)
	return fetchPlan{topics: s.topicsOf(session), session: session.id, epoch: r.sessionEpoch}, nil
}

// resolve gives topics that are named by id their names.
func (s *fetchSessions) resolve(topics []fetchTopic) {
	for i, t := range topics {
		if t.id != (metadata.StreamID{}) {
			topics[i].name = s.topicName(t.id)
		}
	}
}

// update takes a request's changes into its session. It reports false if the
// session would become too large.
func (s *fetchSessions) update(session *fetchSession, r *fetchRequest) bool {
	for _, t := range r.topics {
		for _, p := range t.partitions {
			s.put(session, t, p)
		}
	}
	for _, t := range r.forgotten {
		for _, p := range t.partitions {
			if e, ok := session.entries[keyOf(t, p.index)]; ok {
				session.order.Remove(e)
				delete(session.entries, keyOf(t, p.index))
				s.partitions--
			}
		}
	}
	return s.partitions <= maxSessionPartitions
}

func (s *fetchSessions) put(session *fetchSession, t fetchTopic, p fetchPartition) *sessionEntry {
	key := keyOf(t, p.index)
	if e, ok := session.entries[key]; ok {
		entry := e.Value.(*sessionEntry)
		entry.fetchPartition = p
		return entry
	}
	entry := &sessionEntry{key: key, name: t.name, fetchPartition: p, highWatermark: -1, start: -1}
	session.entries[key] = session.order.PushBack(entry)
	s.partitions++
	return entry
}

// topicsOf returns the session's partitions in the order in which they are to be
// read.
func (s *fetchSessions) topicsOf(session *fetchSession) []fetchTopic {
	var topics []fetchTopic
	for e := session.order.Front(); e != nil; e = e.Next() {
		entry := e.Value.(*sessionEntry)
		if entry.name == "" {
			entry.name = s.topicName(entry.key.id) // made after it was asked for
		}
		if n := len(topics); n == 0 || topics[n-1].name != entry.name || topics[n-1].id != entry.key.id {
			topics = append(topics, fetchTopic{id: entry.key.id, name: entry.name})
		}
		last := &topics[len(topics)-1]
		last.partitions = append(last.partitions, entry.fetchPartition)
	}
	return topics
}

// finish notes what a fetch answers, marks what its answer leaves out, and
// returns the session's id: 0 without one.
func (s *fetchSessions) finish(plan *fetchPlan, results [][]fetched) (int32, error) {
	if plan.epoch == sessionless {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if plan.epoch == newSession {
		return s.create(plan, results), nil
	}
	session, ok := s.sessions[plan.session]
	if !ok || session.epoch != nextSessionEpoch(plan.epoch) {
		return 0, kerr.InvalidFetchSessionEpoch // another fetch of the session came between
	}
	for i, t := range plan.topics {
		for j := range results[i] {
			f := &results[i][j]
			e, ok := session.entries[keyOf(t, f.index)]
			if !ok {
				f.omit = true
				continue
			}
			f.omit = !e.Value.(*sessionEntry).answer(f)
			if f.data.Bytes > 0 {
				session.order.MoveToBack(e) // the others' turn comes first
			}
		}
	}
	return session.id, nil
}

// answer notes what is answered for the partition and reports whether there is
// anything that the client does not know.
func (e *sessionEntry) answer(f *fetched) bool {
	changed := f.data.Bytes > 0 || f.data.HighWatermark != e.highWatermark || f.data.Start != e.start
	e.highWatermark, e.start = f.data.HighWatermark, f.data.Start
	if f.err != nil || f.diverging != nil || f.readFrom > 0 {
		e.highWatermark = -1 // that it is over must be told too
		return true
	}
	return changed
}

// create makes a session of a full fetch, if there is room.
func (s *fetchSessions) create(plan *fetchPlan, results [][]fetched) int32 {
	size := 0
	for _, t := range plan.topics {
		size += len(t.partitions)
	}
	if s.partitions+size > maxSessionPartitions || len(s.sessions) >= s.max && !s.evict(size) {
		return 0
	}
	session := &fetchSession{
		id: s.freeID(), byID: plan.byID, epoch: nextSessionEpoch(newSession),
		created: s.now(), used: s.now(),
		entries: map[entryKey]*list.Element{}, order: list.New(),
	}
	for i, t := range plan.topics {
		for j, p := range t.partitions {
			s.put(session, t, p).answer(&results[i][j])
		}
	}
	s.sessions[session.id] = session
	return session.id
}

// evict makes room for a session of size partitions: of one that nobody has used
// for long or, among those that are no longer safe, of the smallest if it is
// smaller than the new one.
func (s *fetchSessions) evict(size int) bool {
	var idle, least *fetchSession
	for _, session := range s.sessions {
		if idle == nil || session.used.Before(idle.used) {
			idle = session
		}
		if s.now().Sub(session.created) > sessionEviction && (least == nil || session.lessThan(least)) {
			least = session
		}
	}
	switch {
	case idle != nil && s.now().Sub(idle.used) > sessionEviction:
		s.remove(idle)
	case least != nil && least.order.Len() <= size:
		s.remove(least)
	default:
		return false
	}
	return true
}

// lessThan says that the session is worth less than another one.
func (f *fetchSession) lessThan(other *fetchSession) bool {
	if a, b := f.order.Len(), other.order.Len(); a != b {
		return a < b
	}
	return f.used.Before(other.used)
}

func (s *fetchSessions) remove(session *fetchSession) {
	s.partitions -= session.order.Len()
	delete(s.sessions, session.id)
}

// freeID returns an id that cannot be guessed from another one.
func (s *fetchSessions) freeID() int32 {
	for {
		id := rand.Int32N(math.MaxInt32) + 1
		if _, taken := s.sessions[id]; !taken {
			return id
		}
	}
}

func nextSessionEpoch(epoch int32) int32 {
	if epoch == math.MaxInt32 {
		return 1 // 0 would ask for a new session
	}
	return epoch + 1
}
