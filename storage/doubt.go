package storage

import (
	"bytes"
	"maps"

	"github.com/hashicorp/raft"
)

// Values of the start file beside raft's own.
const (
	// bootKey is there while frames may not be synced, in the mode Replicated: the boot of the machine in which that is.
	bootKey = "daybook.boot"
	// doubtKey is there while the journal is in doubt.
	doubtKey = "daybook.doubt"
)

// Doubt says whether the journal may be without entries that it had stored: its machine was started anew, or maybe was,
// after frames had been written that no sync had reached, or its end was cut by a repair. What it acknowledged then may
// be missing, so its votes in an election are worth nothing until it has again what it had. It stays in doubt, over
// restarts, until EndDoubt.
func (j *Journal) Doubt() bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	_, in := j.start.values[doubtKey]
	return in
}

// EndDoubt notes, durably, that the journal has all that it had, or that it is believed for want of a better copy.
func (j *Journal) EndDoubt() error {
	j.wmu.Lock()
	defer j.wmu.Unlock()
	if err := j.writable(); err != nil {
		return err
	}
	if !j.Doubt() {
		return nil
	}
	j.mu.Lock() // readers of values take mu
	j.start.values = maps.Clone(j.start.values)
	delete(j.start.values, doubtKey)
	j.mu.Unlock()
	if err := j.start.write(); err != nil {
		return j.fail(err)
	}
	return nil
}

// noteBoot decides whether the journal is in doubt, from what the mark said and where its log ends, and notes in which
// boot it goes on. The caller writes the start file if that has changed it, before the mark is opened again: a
// journal that is killed in between is judged by the same signs.
func (j *Journal) noteBoot(was marked, end uint64) (changed bool) {
	values := j.start.values
	before, unsynced := values[bootKey]
	closed := was.state == markClosed && was.durable == end
	other := j.o.Boot == "" || string(before) != j.o.Boot
	if unsynced && other && !closed {
		values[doubtKey], changed = []byte{1}, true
	}
	switch {
	case j.o.Mode == Replicated && (!unsynced || !bytes.Equal(before, []byte(j.o.Boot))):
		values[bootKey], changed = []byte(j.o.Boot), true
	case j.o.Mode != Replicated && unsynced: // recovery has synced the log
		delete(values, bootKey)
		changed = true
	}
	return changed
}

// LastEntry returns the raft index and term of the last entry; of an empty log those of what its front links to.
func (j *Journal) LastEntry() (index, term uint64) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for i := len(j.index.segs) - 1; i >= 0; i-- {
		if s := j.index.segs[i]; len(s.entries) > 0 {
			return s.last(), uint64(s.entries[len(s.entries)-1].term)
		}
	}
	return j.index.front.index, j.index.front.term
}

// hasConfiguration says whether one of the entries is a configuration of the group. Those are synced in every mode: a
// member that may have lost entries still knows all members that may have them.
func hasConfiguration(logs []*raft.Log) bool {
	for _, l := range logs {
		if l.Type == raft.LogConfiguration {
			return true
		}
	}
	return false
}
