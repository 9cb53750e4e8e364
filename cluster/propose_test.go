package cluster

import (
	"bytes"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/hashicorp/raft"
)

func TestWaitingCommandsShareEntries(t *testing.T) {
	m := metadata.New()
	entries, began, hold := 0, make(chan struct{}, 1), make(chan struct{})
	p := newProposer(func(data []byte) (any, error) {
		if entries++; entries == 1 {
			began <- struct{}{}
		}
		<-hold
		return m.Apply(&raft.Log{Data: data}), nil
	}, func() *metadata.Origin { return nil })
	defer p.close()
	const commits = 100
	results := make(chan error, commits)
	commit := func(i int64) {
		_, err := p.propose(t.Context(), metadata.Command{CommitOffsets: &metadata.CommitOffsets{Group: "g", Offsets: []metadata.GroupOffset{{Offset: i}}}})
		results <- err
	}
	go commit(0)
	<-began // the others wait for its entry
	for i := range int64(commits - 1) {
		go commit(i + 1)
	}
	for len(p.queue) < commits-1 {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	for range commits {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if entries > 3 {
		t.Errorf("%d commits took %d entries, want 2 or 3", commits, entries)
	}
}

func TestLargeCommandsAreSpreadOverEntries(t *testing.T) {
	m := metadata.New()
	largest := 0
	p := newProposer(func(data []byte) (any, error) {
		largest = max(largest, len(data))
		return m.Apply(&raft.Log{Data: data}), nil
	}, func() *metadata.Origin { return nil })
	defer p.close()
	var offsets []metadata.GroupOffset
	for i := range 100 {
		offsets = append(offsets, metadata.GroupOffset{Partition: int32(i), Metadata: bytes.Repeat([]byte{1}, 4096)})
	}
	results := make(chan error, 50)
	for range cap(results) {
		go func() {
			_, err := p.propose(t.Context(), metadata.Command{CommitOffsets: &metadata.CommitOffsets{Group: "g", Offsets: offsets}})
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if largest > entryBytes {
		t.Errorf("an entry had %d bytes, want at most %d", largest, entryBytes)
	}
}
