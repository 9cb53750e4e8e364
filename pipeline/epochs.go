package pipeline

// epochs are the leader epochs under which the records of a partition were appended, as
// they were read: each with the offset of its first record. They only grow.
type epochs []epochStart

type epochStart struct {
	offset int64
	epoch  int32
}

// note takes the epoch of a record that was read; -1 is not known.
func (e *epochs) note(offset int64, epoch int32) {
	if n := len(*e); n > 0 && (*e)[n-1].epoch >= epoch || epoch < 0 {
		return
	}
	*e = append(*e, epochStart{offset, epoch})
}

// before returns the epoch of the last record before an offset, or otherwise if none was
// read, and forgets what is older: who asks next asks for that offset or a later one.
func (e *epochs) before(offset int64, otherwise int32) int32 {
	last := -1
	for i, s := range *e {
		if s.offset < offset {
			last = i
		}
	}
	if last < 0 {
		return otherwise
	}
	*e = (*e)[last:]
	return (*e)[0].epoch
}
