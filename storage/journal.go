package storage

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/daybook-data/daybook/internal/vfs"
)

// Journal is one journal on disk. See the package comment for what it promises.
type Journal struct {
	dir   string
	o     Options
	fsys  vfs.FS
	lock  io.Closer
	cache *tableCache

	indexer *indexer // has its own mutexes

	buffers sync.Pool // of *[]byte, for Read
	pieces  piecePool // for Read
	walkers sync.Pool // of *walker, for Find

	wmu       writeLock // one writer at a time; guards the fields up to the next mutex
	start     *startFile
	tail      *tail // behind the last frame; addFrame and addBatch move it
	sealed    Front // where the last segment started when the log was read
	app       appender
	justCut   bool // the end was cut, and nothing stored since
	proposals proposals

	// flushMu is held by a flush, which does not take wmu, and by what destroys frames: a flush that ended in the middle of
	// that would vouch for frames that are gone.
	flushMu writeLock

	mendMu  writeLock // one at a time mends; taken before wmu
	damages damages   // has its own mutex

	space space // has its own mutex

	mu    sync.RWMutex // guards the index and what is reachable from it
	index index
	holds map[string]map[uint32]int64
	keep  Retention

	edge      atomic.Pointer[segment] // the one that keeps its batch index in memory, as what is committed ends in it
	committed atomic.Uint64           // journal position behind the last applied entry
	durable   atomic.Uint64           // journal position up to which all is on stable storage
	lone      atomic.Bool             // one member of the group votes, by the last configuration in the log
	markMu    sync.Mutex              // guards mark
	mark      *mark
	watchers  watchers

	failed   atomic.Pointer[failure] // the first error that made the journal read-only
	failedCh chan struct{}           // closed then
	closing  chan struct{}
	workers  sync.WaitGroup // the flusher and the preparer
	flusher  flusher        // has its own mutex
}

// index is what readers see of the log. Guarded by Journal.mu.
type index struct {
	segs  []*segment // in order; the last is the one being written
	parts map[uint32]*partition
	front tail   // what the first segment links to: position, raft index, term, checksum and configuration are used
	first uint64 // lowest raft index that exists for raft, if above the first stored one
	end   uint64 // journal position behind the last frame

	trims []uint64 // raft indexes of entries that may be trims and have had no effect yet, in order

	raftFront uint64 // front.index when raft was given the log
}

// Open opens the journal in dir, making it if there is none, and recovers it as FORMAT.md says. The directory belongs
// to the journal until Close; if another process has it the error is a *vfs.LockedError.
func Open(dir string, o Options) (*Journal, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	j := &Journal{
		dir: dir, o: o, fsys: o.FS, keep: o.Retention, holds: map[string]map[uint32]int64{},
		wmu: newWriteLock(), flushMu: newWriteLock(), mendMu: newWriteLock(), failedCh: make(chan struct{}), closing: make(chan struct{}),
	}
	j.cache = newTableCache(o.IndexCache)
	j.indexer = newIndexer(j)
	j.space.prep.settled.L = &j.space.mu
	if err := j.open(); err != nil {
		j.closeFiles()
		return nil, fmt.Errorf("opening journal %s: %w", dir, err)
	}
	return j, nil
}

func (j *Journal) open() (err error) {
	if err := j.fsys.MkdirAll(j.dir, 0o755); err != nil {
		return err
	}
	if j.lock, err = j.fsys.Lock(filepath.Join(j.dir, "lock")); err != nil {
		return err
	}
	return j.recover()
}

// Close syncs what is not yet durable and gives the directory back. Readers that still hold a Chunk may go on using
// it. The error is that of the sync; after a failure the journal closes all the same.
func (j *Journal) Close() error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	select {
	case <-j.closing:
		return nil
	default:
	}
	close(j.closing)
	j.endFlusher()
	j.workers.Wait()
	j.indexer.done.Wait()
	var err error
	if j.Err() == nil {
		err = j.closeClean()
	}
	j.fail(ErrClosed)
	j.closeFiles()
	return err
}

func (j *Journal) closeClean() error {
	if err := j.syncTail(); err != nil {
		return fmt.Errorf("closing journal %s: %w", j.dir, err)
	}
	j.markMu.Lock()
	defer j.markMu.Unlock()
	if err := j.mark.setSynced(j.durable.Load(), markClosed); err != nil {
		return fmt.Errorf("closing journal %s: %w", j.dir, err)
	}
	return nil
}

// closeFiles gives up whatever is open.
func (j *Journal) closeFiles() {
	j.mu.Lock()
	segs := j.index.segs
	j.index.segs = nil
	j.mu.Unlock()
	for _, s := range segs {
		s.discard = closeSegment
		s.release()
	}
	j.space.close()
	if j.mark != nil {
		_ = j.mark.file.Close() // synced if that mattered
	}
	if j.start != nil {
		j.start.close()
	}
	if j.lock != nil {
		_ = j.lock.Close() // only lets the lock go
	}
}

func closeSegment(s *segment) { _ = s.file.Close() } // every write that counts was synced

// Dir is the journal's directory.
func (j *Journal) Dir() string { return j.dir }

// Err returns the error that made the journal read-only, or nil.
func (j *Journal) Err() error {
	if f := j.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

// Failed is closed when the journal became read-only, by an error or by Close.
func (j *Journal) Failed() <-chan struct{} { return j.failedCh }

// fail makes the journal read-only and returns the error that did it, which is the first one.
//
// Guarantee 4.
func (j *Journal) fail(err error) error {
	if j.failed.CompareAndSwap(nil, &failure{err: err}) {
		close(j.failedCh)
		if j.o.OnFail != nil {
			j.o.OnFail()
		}
	}
	return j.writable()
}

// writable is nil until the journal failed.
func (j *Journal) writable() error {
	f := j.failed.Load()
	switch {
	case f == nil:
		return nil
	case f.err == ErrClosed:
		return ErrClosed
	}
	return f
}

// Fail makes the journal read-only, for an owner that met an error it cannot go on after. The first error stays.
func (j *Journal) Fail(err error) { _ = j.fail(err) }
