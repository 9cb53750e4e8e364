package storage

import (
	"sync"
	"time"
)

// syncTail makes all that is written durable. The caller holds wmu.
func (j *Journal) syncTail() error {
	seg := j.current()
	end := seg.end()
	if end <= j.durable.Load() {
		return nil
	}
	return j.settle(seg, end, false)
}

// raiseDurable notes that all below end is on stable storage, and returns up to where it was before.
func (j *Journal) raiseDurable(end uint64) (from uint64, err error) {
	j.markMu.Lock()
	defer j.markMu.Unlock()
	from = j.durable.Load()
	if end <= from {
		return from, nil
	}
	if err := j.mark.set(end, markOpen); err != nil {
		return from, err
	}
	j.durable.Store(end)
	if j.readsDurable() {
		j.changed()
	}
	return from, nil
}

// flusher syncs in the background in the mode Replicated: data at most FlushEvery after it was written, plus the time a
// sync takes. It has a goroutine only while it syncs, as most journals of many have nothing to sync.
type flusher struct {
	mu      sync.Mutex // guards all below
	timer   *time.Timer
	due     bool // the timer runs
	syncing bool
	again   bool // something was written meanwhile
	ended   bool
}

// wakeFlusher has what was written synced soon.
func (j *Journal) wakeFlusher() {
	f := &j.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ended || f.due:
	case f.syncing:
		f.again = true
	case f.timer == nil:
		f.due = true
		f.timer = time.AfterFunc(j.o.FlushEvery, j.flushDue)
	default:
		f.due = true
		f.timer.Reset(j.o.FlushEvery)
	}
}

// flushDue syncs when it is time.
func (j *Journal) flushDue() {
	f := &j.flusher
	f.mu.Lock()
	f.due = false
	if f.ended {
		f.mu.Unlock()
		return
	}
	f.syncing = true
	j.workers.Add(1)
	f.mu.Unlock()
	defer j.workers.Done()
	if j.writable() == nil {
		if err := j.flush(); err != nil {
			_ = j.fail(err) // appends return it from now on
		}
	}
	f.mu.Lock()
	again := f.again
	f.syncing, f.again = false, false
	f.mu.Unlock()
	if again {
		j.wakeFlusher()
	}
}

// endFlusher has nothing begin to be synced any more.
func (j *Journal) endFlusher() {
	f := &j.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.timer != nil {
		f.timer.Stop()
	}
}

// Flush makes all that was written before the call durable.
func (j *Journal) Flush() error {
	if err := j.writable(); err != nil {
		return err
	}
	if err := j.flush(); err != nil {
		return j.fail(err)
	}
	return nil
}

func (j *Journal) flush() error {
	j.flushMu.Lock()
	defer j.flushMu.Unlock()
	// A sync of the current segment is enough: sealing syncs, and nothing is written behind before that.
	j.mu.RLock()
	if len(j.index.segs) == 0 {
		j.mu.RUnlock()
		return ErrClosed
	}
	seg := j.index.segs[len(j.index.segs)-1]
	end := seg.end()
	seg.acquire()
	j.mu.RUnlock()
	defer seg.release()
	if end <= j.durable.Load() {
		return nil
	}
	return j.settle(seg, end, false)
}

// DurableEnd is the journal position up to which all is on stable storage.
func (j *Journal) DurableEnd() uint64 { return j.durable.Load() }
