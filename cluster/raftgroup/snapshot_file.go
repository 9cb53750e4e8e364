package raftgroup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

const (
	snapMagic    = 0x31504e53 // "SNP1"
	snapHeader   = 56
	snapSuffix   = ".snap"
	snapsKept    = 2
	snapMaxBytes = 1 << 30
)

var snapTable = crc32.MakeTable(crc32.Castagnoli)

// fileSnapshots keeps the last two snapshots of a state machine, one file each: a header, raft's configuration, the
// state, all under checksums. A file comes into being by a rename when it is whole and synced. One that does not pass its
// checksums is renamed and never deleted: the state it may still hold is worth more than the space.
type fileSnapshots struct {
	fsys   vfs.FS
	dir    string
	logger *slog.Logger
	mu     sync.Mutex                        // held while files are listed and set aside or removed: raft and who checks them both do
	newest atomic.Pointer[raft.SnapshotMeta] // as of the last List; nil: none
	ready  func(index, term uint64) error    // refuses a snapshot of what ends with an entry if there is no room for it; nil: none
}

var _ raft.SnapshotStore = (*fileSnapshots)(nil)

// snapshotsDir is in the directory of a group of commands.
const snapshotsDir = "snapshots"

// openSnapshots opens those of a group, making their directory.
func openSnapshots(fsys vfs.FS, group string, logger *slog.Logger) (*fileSnapshots, error) {
	dir := filepath.Join(group, snapshotsDir)
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the snapshot directory: %w", err)
	}
	return &fileSnapshots{fsys: fsys, dir: dir, logger: logger}, nil
}

// NewestSnapshot reads the newest good snapshot of the group of commands in a directory, without changing anything there;
// meta is nil if there is none.
func NewestSnapshot(fsys vfs.FS, dir string) (meta *raft.SnapshotMeta, state []byte, err error) {
	s := &fileSnapshots{fsys: fsys, dir: filepath.Join(dir, snapshotsDir)}
	names, err := fsys.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, name := range slices.Backward(names) {
		id, ok := strings.CutSuffix(name, snapSuffix)
		if !ok {
			continue
		}
		meta, state, err := s.read(id)
		if errors.Is(err, errBadSnapshot) || errors.Is(err, fs.ErrNotExist) {
			continue // an older one is as good, with more of the log behind it
		}
		return meta, state, err
	}
	return nil, nil, nil
}

// MatchSnapshots makes the log of the group of commands in a directory go on where its newest snapshot ends, as opening it
// does.
func MatchSnapshots(fsys vfs.FS, dir string, log *storage.Journal, logger *slog.Logger) error {
	s, err := openSnapshots(fsys, dir, logger)
	if err != nil {
		return err
	}
	return s.matchLog(log)
}

// matchLog makes sure that the log goes on where the newest snapshot ends. If it begins behind it, a snapshot is missing
// or damaged, and starting would lose what it held. If it ends before it, the snapshot came from another member and the
// log was to be cleared when the power went; it is cleared now.
func (s *fileSnapshots) matchLog(j *storage.Journal) error {
	metas, err := s.List()
	if err != nil {
		return err
	}
	first, err := j.FirstIndex()
	if err != nil {
		return err
	}
	last, err := j.LastIndex()
	if err != nil {
		return err
	}
	have := uint64(0)
	if len(metas) > 0 {
		have = metas[0].Index
	}
	if first > have+1 {
		return fmt.Errorf("%s: %w: the newest good one ends at entry %d, but the log starts at %d, and what is between is lost here", s.dir, ErrSnapshotsLost, have, first)
	}
	if last > 0 && last < have {
		return j.DeleteRange(first, last)
	}
	return nil
}

// List implements raft.SnapshotStore: newest first, only those that pass their checksums.
func (s *fileSnapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

// list is List. The caller holds mu.
func (s *fileSnapshots) list() ([]*raft.SnapshotMeta, error) {
	names, err := s.fsys.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var metas []*raft.SnapshotMeta
	for _, name := range slices.Backward(names) {
		id, ok := strings.CutSuffix(name, snapSuffix)
		if !ok {
			continue
		}
		meta, _, err := s.read(id)
		if errors.Is(err, errBadSnapshot) {
			path := filepath.Join(s.dir, name)
			s.logger.Error("snapshot is damaged and was set aside", "file", path, "error", err)
			if err := s.fsys.Rename(path, path+".damaged"); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		metas = append(metas, meta)
	}
	var newest *raft.SnapshotMeta
	if len(metas) > 0 {
		newest = metas[0]
	}
	s.newest.Store(newest)
	return metas, nil
}

var errBadSnapshot = errors.New("snapshot fails its checksum")

// read returns a snapshot that passes its checksums.
func (s *fileSnapshots) read(id string) (*raft.SnapshotMeta, []byte, error) {
	b, err := vfs.ReadFile(s.fsys, filepath.Join(s.dir, id+snapSuffix))
	if err != nil {
		return nil, nil, err
	}
	le := binary.LittleEndian
	if len(b) < snapHeader || le.Uint32(b) != snapMagic || crc32.Checksum(b[:52], snapTable) != le.Uint32(b[52:]) {
		return nil, nil, errBadSnapshot
	}
	conf, state := uint64(le.Uint32(b[8:])), le.Uint64(b[16:])
	if snapHeader+conf+state != uint64(len(b)) || crc32.Checksum(b[snapHeader:], snapTable) != le.Uint32(b[12:]) {
		return nil, nil, errBadSnapshot
	}
	meta := &raft.SnapshotMeta{
		Version: 1, ID: id, Size: int64(state),
		Index: le.Uint64(b[24:]), Term: le.Uint64(b[32:]), ConfigurationIndex: le.Uint64(b[40:]),
		Configuration: raft.DecodeConfiguration(b[snapHeader : snapHeader+conf]),
	}
	return meta, b[snapHeader+conf:], nil
}

// Open implements raft.SnapshotStore.
func (s *fileSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, state, err := s.read(id)
	if err != nil {
		return nil, nil, fmt.Errorf("opening snapshot %s: %w", id, err)
	}
	return meta, io.NopCloser(bytes.NewReader(state)), nil
}

// Create implements raft.SnapshotStore.
func (s *fileSnapshots) Create(_ raft.SnapshotVersion, index, term uint64, conf raft.Configuration, confIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if s.ready != nil {
		if err := s.ready(index, term); err != nil {
			return nil, fmt.Errorf("beginning a snapshot: %w", err)
		}
	}
	k := &fileSink{store: s, id: fmt.Sprintf("%020d-%020d", index, term), conf: raft.EncodeConfiguration(conf)}
	k.index, k.term, k.confIndex = index, term, confIndex
	return k, nil
}

// fileSink collects a snapshot in memory, for it is small, and writes it at Close.
type fileSink struct {
	store                  *fileSnapshots
	id                     string
	index, term, confIndex uint64
	conf                   []byte
	state                  bytes.Buffer
}

// ID implements raft.SnapshotSink.
func (k *fileSink) ID() string { return k.id }

// Cancel implements raft.SnapshotSink.
func (k *fileSink) Cancel() error { return nil }

// Write implements io.Writer.
func (k *fileSink) Write(p []byte) (int, error) {
	if k.state.Len()+len(p) > snapMaxBytes {
		return 0, fmt.Errorf("snapshot is larger than %d bytes", snapMaxBytes)
	}
	return k.state.Write(p)
}

// Close implements raft.SnapshotSink: nil means that the snapshot is durable.
func (k *fileSink) Close() error {
	le := binary.LittleEndian
	b := make([]byte, snapHeader, snapHeader+len(k.conf)+k.state.Len())
	b = append(append(b, k.conf...), k.state.Bytes()...)
	le.PutUint32(b[0:], snapMagic)
	le.PutUint32(b[8:], uint32(len(k.conf)))
	le.PutUint32(b[12:], crc32.Checksum(b[snapHeader:], snapTable))
	le.PutUint64(b[16:], uint64(k.state.Len()))
	le.PutUint64(b[24:], k.index)
	le.PutUint64(b[32:], k.term)
	le.PutUint64(b[40:], k.confIndex)
	le.PutUint32(b[52:], crc32.Checksum(b[:52], snapTable))
	path := filepath.Join(k.store.dir, k.id+snapSuffix)
	if err := vfs.WriteFile(k.store.fsys, path, b, 0o644); err != nil {
		return fmt.Errorf("writing snapshot %s: %w", path, err)
	}
	return k.store.prune()
}

// prune removes all but the newest snapshots.
func (s *fileSnapshots) prune() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	metas, err := s.list()
	if err != nil {
		return err
	}
	for _, m := range metas[min(len(metas), snapsKept):] {
		if err := s.fsys.Remove(filepath.Join(s.dir, m.ID+snapSuffix)); err != nil {
			return fmt.Errorf("removing an old snapshot: %w", err)
		}
	}
	return nil
}

// CopySnapshots copies the snapshots of the group of commands in one directory to another one.
func CopySnapshots(fsys vfs.FS, from, to string) error {
	from, to = filepath.Join(from, snapshotsDir), filepath.Join(to, snapshotsDir)
	names, err := fsys.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, snapSuffix) {
			continue
		}
		b, err := vfs.ReadFile(fsys, filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := vfs.WriteFile(fsys, filepath.Join(to, name), b, 0o644); err != nil {
			return err
		}
	}
	return fsys.SyncDir(filepath.Dir(to))
}
