package storage

import "time"

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

func (j *Journal) wakeFlusher() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// flushLoop syncs in the background in the mode Replicated. Data is synced at most FlushEvery after it was written,
// plus the time a sync takes.
func (j *Journal) flushLoop() {
	timer := time.NewTimer(j.o.FlushEvery)
	defer timer.Stop()
	for {
		select {
		case <-j.closing:
			return
		case <-j.failedCh:
			return
		case <-j.kick:
		}
		timer.Reset(j.o.FlushEvery)
		select {
		case <-j.closing:
			return
		case <-timer.C:
		}
		if err := j.flush(); err != nil {
			_ = j.fail(err) // appends return it from now on
			return
		}
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
