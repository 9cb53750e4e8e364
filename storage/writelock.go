package storage

// writeLock is a mutex that is held while a segment is synced, so its waiters wait in a channel. The clock of
// testing/synctest stands still while a goroutine waits for a sync.Mutex; it goes on while one waits for a channel, so
// a simulation can let a sync take its time.
type writeLock chan struct{}

func newWriteLock() writeLock { return make(writeLock, 1) }

func (l writeLock) Lock()   { l <- struct{}{} }
func (l writeLock) Unlock() { <-l }
