package storage

import "sync"

// watchers are those who wait for new data.
type watchers struct {
	mu  sync.Mutex
	all map[*watcher]struct{}
}

type watcher struct {
	ch    chan<- struct{}
	parts map[uint32]int64 // visible end at the last signal
	all   bool             // it watches the journal and no partition
	end   uint64           // of what was visible at the last signal, if all
}

// Commit makes everything up to the raft entry index readable. It never goes back.
func (j *Journal) Commit(index uint64) {
	j.mu.RLock()
	end, ok := j.index.entryEnd(index)
	trims := j.index.trimsDue(index)
	j.mu.RUnlock()
	if !ok {
		return
	}
	if trims {
		j.takeTrims(index)
	}
	for {
		old := j.committed.Load()
		if end <= old {
			return
		}
		if j.committed.CompareAndSwap(old, end) {
			break
		}
	}
	j.changed()
}

// visible is the journal position below which batches may be read.
func (j *Journal) visible() uint64 {
	if j.readsDurable() {
		return min(j.committed.Load(), j.durable.Load())
	}
	return j.committed.Load()
}

// Notify sends to ch, without waiting, whenever new committed data is in one of the partitions, and once at the start
// if there already is data: give ch room for one signal. One channel may watch many journals. stop ends it.
func (j *Journal) Notify(ch chan<- struct{}, partitions ...uint32) (stop func()) {
	w := &watcher{ch: ch, parts: make(map[uint32]int64, len(partitions))}
	for _, p := range partitions {
		w.parts[p] = 0
	}
	return j.watch(w)
}

func (j *Journal) watch(w *watcher) (stop func()) {
	ws := &j.watchers
	ws.mu.Lock()
	if ws.all == nil {
		ws.all = map[*watcher]struct{}{}
	}
	ws.all[w] = struct{}{}
	ws.mu.Unlock()
	j.changed()
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(ws.all, w)
	}
}

func (ws *watchers) any() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all) > 0
}

// changed signals the watchers of partitions that grew, and the indexer.
func (j *Journal) changed() {
	j.indexer.wake()
	if !j.watchers.any() {
		return
	}
	j.loadEdge() // without it the end would not be known to have grown
	j.watchers.mu.Lock()
	defer j.watchers.mu.Unlock()
	visible := j.visible()
	j.mu.RLock()
	defer j.mu.RUnlock()
	for w := range j.watchers.all {
		grown := w.all && visible > w.end
		if grown {
			w.end = visible
		}
		for id, seen := range w.parts {
			p := j.index.parts[id]
			if p == nil {
				continue
			}
			if end := p.visibleEnd(visible); end > seen {
				w.parts[id], grown = end, true
			}
		}
		if grown {
			select {
			case w.ch <- struct{}{}:
			default: // a signal is waiting already
			}
		}
	}
}
