// Package disk watches the disk that a node has its journals on: how full it is, by which appends are taken or refused, and
// whether it answers.
package disk

import "time"

// Options say how a node treats its disk. Zero fields mean their defaults.
type Options struct {
	// ReserveBytes is how much must be free for appends to be taken: 5 % of the
	// disk, but at most 1 GiB, by default; negative for none. What the node writes
	// for itself, commits of groups among it, may use the reserve.
	ReserveBytes int64
	// ReservePercent is the same as a part of the disk, if above 0.
	ReservePercent float64
	// DeleteEarly removes old segments before their time while the reserve is
	// touched. What a reader holds stays.
	DeleteEarly bool
	// StallAfter is after how long an operation that has not returned is taken for
	// a disk that has stopped answering; 5 s by default.
	StallAfter time.Duration
	// CacheBytes bounds the memory that what was written and read may fill, over
	// all journals; storage.DefaultCacheBytes if 0.
	CacheBytes int64
	// CheckEvery is how often the disk is looked at; 1 s by default.
	CheckEvery time.Duration
}
