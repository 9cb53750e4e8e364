package kafka

import (
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// sessionCache is a cache whose clock a test moves.
func sessionCache(max int) (*fetchSessions, *time.Duration) {
	s := newFetchSessions(max, func(metadata.StreamID) string { return "" })
	start, passed := time.Now(), new(time.Duration)
	s.now = func() time.Time { return start.Add(*passed) }
	return s, passed
}

// open asks for a session of n partitions and returns its id.
func (s *fetchSessions) open(t *testing.T, n int) int32 {
	t.Helper()
	topic := fetchTopic{name: "t", partitions: make([]fetchPartition, n)}
	for i := range topic.partitions {
		topic.partitions[i].index = int32(i)
	}
	r := fetchRequest{topics: []fetchTopic{topic}}
	plan, err := s.begin(&r)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.finish(&plan, [][]fetched{make([]fetched, n)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *fetchSessions) has(id int32) bool { return s.sessions[id] != nil }

func TestFullSessionCacheGivesNoSession(t *testing.T) {
	s, passed := sessionCache(2)
	small, large := s.open(t, 3), s.open(t, 10)
	if id := s.open(t, 100); id != 0 {
		t.Errorf("got session %d while the cache is full of fresh ones, want 0", id)
	}
	*passed = sessionEviction + time.Second
	s.sessions[small].used, s.sessions[large].used = s.now(), s.now()
	if id := s.open(t, 2); id != 0 || !s.has(small) {
		t.Errorf("a session of 2 partitions took the place of one of 3")
	}
	if id := s.open(t, 5); id == 0 || s.has(small) || !s.has(large) {
		t.Errorf("a session of 5 partitions did not take the place of the one of 3")
	}
	*passed *= 2
	if id := s.open(t, 1); id == 0 || len(s.sessions) != 2 {
		t.Errorf("an idle session was kept: got %d", id)
	}
}

func TestSessionCacheBoundsPartitions(t *testing.T) {
	s, _ := sessionCache(10)
	most := s.open(t, maxSessionPartitions-5)
	if id := s.open(t, 6); most == 0 || id != 0 || s.partitions > maxSessionPartitions {
		t.Errorf("got session %d with %d partitions cached", id, s.partitions)
	}
	small := s.open(t, 5)
	r := fetchRequest{session: small, sessionEpoch: 1, topics: []fetchTopic{{name: "u", partitions: make([]fetchPartition, 1)}}}
	if _, err := s.begin(&r); err == nil || s.has(small) {
		t.Errorf("a session grew beyond the bound: %v", err)
	}
	if want := maxSessionPartitions - 5; s.partitions != want {
		t.Errorf("%d partitions are counted, want %d", s.partitions, want)
	}
}
