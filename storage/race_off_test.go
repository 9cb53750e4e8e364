//go:build !race

package storage_test

// raced says that the race detector runs.
const raced = false
