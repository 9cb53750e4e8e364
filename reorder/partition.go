package reorder

// A partition is where records come from.
type partition struct {
	name    string
	own     sourceID
	byName  map[string]sourceID // named producers
	revoked bool

	next     int64 // the lowest position that may be pushed now
	restored int64 // below it the checkpoint has already read
	low      int64 // of the checkpoint: below it nothing was held
	stamp    int64 // the running maximum of J
	held     positions

	// The last producer seen: records of one producer tend to come together.
	lastName string
	lastID   sourceID
}

// read returns the position after the last one read, by this buffer or by the one
// whose checkpoint was restored.
func (p *partition) read() int64 { return max(p.next, p.restored) }

// find returns the source called name, if it is known. Empty means the partition.
func (p *partition) find(name string) (sourceID, bool) {
	if name == "" {
		return p.own, true
	}
	if name == p.lastName {
		return p.lastID, true
	}
	id, ok := p.byName[name]
	if ok {
		p.lastName, p.lastID = name, id
	}
	return id, ok
}
