package vfs

// A Mapper is a File that can be looked at in memory. Files of other systems than Linux, and of the file systems for
// tests, are none; their users read instead.
type Mapper interface {
	// Map returns a read-only view of the file's first size bytes. Bytes behind the end of the file must not be touched
	// before the file has grown over them.
	Map(size int64) (*Mapping, error)
}
