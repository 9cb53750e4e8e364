//go:build !linux

package node

// dropBinary does nothing here: it is only for the sake of memory.
func dropBinary() {}
