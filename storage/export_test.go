package storage

// KeepIndexesByHand is KeepIndexes without the goroutine that makes the indexes: MakeIndexes does, so that a test knows when.
func (j *Journal) KeepIndexesByHand(x Indexes) {
	j.indexer.start.Do(func() {})
	j.KeepIndexes(x)
}

// MakeIndexes makes the indexes that are wanted and not there, where the caller is.
func (j *Journal) MakeIndexes() { j.indexer.pass(map[uint64]bool{}) }

// CountRecords reads a batch as the indexes do.
func CountRecords(data []byte) (n int, err error) {
	var w walker
	h := parseHeader(data)
	err = w.each(h, data[batchHeaderBytes:], func(*plainRecord) error { n++; return nil })
	return n, err
}
