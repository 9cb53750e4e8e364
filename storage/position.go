package storage

// LogEnd returns the last raft entry and the journal position behind it, in bytes. It waits for no disk.
func (j *Journal) LogEnd() (entry, position uint64) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return max(j.index.lastIndex(), j.index.front.index), j.index.end
}

// PositionOf returns the journal position behind a raft entry. Of entries that were removed from the front it is where the
// front is, of those that are not there yet where the log ends. It waits for no disk.
func (j *Journal) PositionOf(entry uint64) uint64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if entry <= j.index.front.index {
		return j.index.front.pos
	}
	if end, ok := j.index.entryEnd(entry); ok {
		return end
	}
	return j.index.end
}
