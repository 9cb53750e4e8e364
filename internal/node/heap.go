package node

import "runtime"

// heapFloor is how much heap the garbage collector sees in use at the least.
const heapFloor = 32 << 20

// raiseHeap keeps the collector from running after every few megabytes until the returned function is called. A server's
// live heap is small, about ten megabytes, as its data is off the heap: by itself the collector would run several times a
// second under load, for some milliseconds on both of two processors, and that was the p99 of small appends. The memory
// is never touched, so none is taken from the system for it; the heap proper grows by up to heapFloor more between
// collections, and a large heap is collected as ever.
func raiseHeap() (lower func()) {
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}
