//go:build !race

package storage_test

// raced: the race detector runs, which takes ten times as long. Tests of one goroutine then do less.
const raced = false
