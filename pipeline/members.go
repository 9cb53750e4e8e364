package pipeline

// Members calls f with each field of the row in the order in which they stand: the
// name without quotes, and the value's bytes as they stand in the record, not decoded.
// Both belong to the row. Of an absent row there are none.
func (r *Row) Members(f func(name, value []byte)) error {
	if r.Absent() {
		return nil
	}
	return members(r.raw, f)
}
