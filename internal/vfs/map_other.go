//go:build !linux

package vfs

// PageBytes is the size of the pages that a Mapping is advised about.
const PageBytes = 4096

// Mapping is a file in memory. There are none on this system: no File is a Mapper.
type Mapping struct {
	// Bytes are the file's bytes.
	Bytes []byte
}

// WillNeed does nothing here.
func (*Mapping) WillNeed(_, _ int64) {}

// Populate does nothing here.
func (*Mapping) Populate(_, _ int64) {}

// Forget does nothing here.
func (*Mapping) Forget(_, _ int64) {}

// Resident does nothing here.
func (*Mapping) Resident(_, _ int64, _ []byte) {}

// Close does nothing here.
func (*Mapping) Close() error { return nil }
