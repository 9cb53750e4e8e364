package raftgroup

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// frontSnapshots is the snapshot store of a group whose log is the data. There is one snapshot, made up when it is
// asked for: the state at the front of the log, once retention has removed something. It is small, and a replica that
// gets it goes on with the log behind it.
//
// In a group of one, which nobody sends snapshots to, it is the state at the start of the last segment instead: what is
// stored there is committed, and raft, which reads every entry behind the snapshot when it starts, is spared millions.
type frontSnapshots struct {
	journal *storage.Journal
	alone   bool

	mu       sync.Mutex
	received map[string]*frontSink // by id, until restored; guarded by mu
}

var _ raft.SnapshotStore = (*frontSnapshots)(nil)

func frontID(index, term uint64) string { return fmt.Sprintf("front-%d-%d", index, term) }

// List implements raft.SnapshotStore.
func (s *frontSnapshots) List() ([]*raft.SnapshotMeta, error) {
	f := s.journal.Front()
	if s.alone {
		sealed := s.journal.Sealed()
		// Whoever is alone with the log of a larger group cannot know what of it is committed.
		if sealed.Index > f.Index && len(raft.DecodeConfiguration(sealed.Config).Servers) == 1 {
			f = sealed
		}
	}
	if f.Index == 0 {
		return nil, nil
	}
	return []*raft.SnapshotMeta{frontMeta(f)}, nil
}

func frontMeta(f storage.Front) *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: 1, ID: frontID(f.Index, f.Term), Index: f.Index, Term: f.Term, Size: int64(len(f.State)),
		Configuration: raft.DecodeConfiguration(f.Config), ConfigurationIndex: f.ConfigIndex,
	}
}

// Open implements raft.SnapshotStore.
func (s *frontSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	k, ok := s.received[id]
	delete(s.received, id)
	s.mu.Unlock()
	if ok {
		k.meta.Size = int64(k.Len())
		return &k.meta, io.NopCloser(bytes.NewReader(k.Bytes())), nil
	}
	f := s.journal.Front()
	if id != frontID(f.Index, f.Term) {
		return nil, nil, fmt.Errorf("snapshot %s is gone: the log now starts behind raft entry %d", id, f.Index)
	}
	return frontMeta(f), io.NopCloser(bytes.NewReader(f.State)), nil
}

// Create implements raft.SnapshotStore: it takes what a leader sends.
func (s *frontSnapshots) Create(version raft.SnapshotVersion, index, term uint64, conf raft.Configuration, confIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &frontSink{store: s, meta: raft.SnapshotMeta{
		Version: version, ID: frontID(index, term) + "-received", Index: index, Term: term,
		Configuration: conf, ConfigurationIndex: confIndex,
	}}, nil
}

// frontSink collects a snapshot in memory.
type frontSink struct {
	bytes.Buffer
	store *frontSnapshots
	meta  raft.SnapshotMeta
}

// ID implements raft.SnapshotSink.
func (s *frontSink) ID() string { return s.meta.ID }

// Cancel implements raft.SnapshotSink.
func (s *frontSink) Cancel() error { return nil }

// Close implements raft.SnapshotSink.
func (s *frontSink) Close() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.received == nil {
		s.store.received = map[string]*frontSink{}
	}
	s.store.received[s.meta.ID] = s
	return nil
}
