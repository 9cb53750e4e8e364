package storage

// writeLock is Journal.wmu: a mutex that is held while the disk works, so its waiters wait in a channel. The clock of
// testing/synctest stands still while a goroutine waits for a sync.Mutex; it goes on while one waits for a channel, so
// a simulation can let a sync take its time.
type writeLock chan struct{}

func newWriteLock() writeLock { return make(writeLock, 1) }

func (l writeLock) Lock()   { l <- struct{}{} }
func (l writeLock) Unlock() { <-l }
