package storage

import (
	"fmt"
	"runtime/debug"
	"syscall"
)

// Guard runs f, which touches the pieces of a Chunk. The pieces may be pages of the file itself: if the disk cannot
// read one, or the file was cut short by somebody, touching it is a fault that would end the process. Guard makes it
// an error that wraps syscall.EIO. Writing pieces to a socket needs no guard: there the kernel touches them, and its write fails.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // only a fault has one
			err = fmt.Errorf("%w: a page of the file cannot be read, or the file was cut short (%v)", syscall.EIO, r)
		default:
			panic(r)
		}
	}()
	return f()
}
