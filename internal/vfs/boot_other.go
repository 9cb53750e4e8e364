//go:build !linux

package vfs

// BootID is not known on this system.
func BootID() string { return "" }
