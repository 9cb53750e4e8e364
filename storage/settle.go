package storage

import (
	"fmt"
	"time"
)

// settle syncs a segment and notes that all of the journal below the position end, which lies in it, is on stable
// storage. Of a segment that is full the last grain is charged to the cache although it is not.
func (j *Journal) settle(seg *segment, end uint64, full bool) error {
	if err := seg.file.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", seg.path, err)
	}
	from, err := j.raiseDurable(end)
	if err == nil {
		j.chargeWritten(seg, from, end, full)
	}
	return err
}

// chargeWritten charges the cache with the grains that were filled between two journal positions. Only from now on can
// they be evicted: the kernel keeps what it has not written.
func (j *Journal) chargeWritten(seg *segment, from, end uint64, full bool) {
	at, to := int64(max(from, seg.base)-seg.base)&^(grainBytes-1), int64(end-seg.base)
	if full {
		to = (to + grainBytes - 1) &^ (grainBytes - 1)
	}
	if to-at < grainBytes || from >= end { // most journals never get so far, and need no view for this
		return
	}
	v := j.viewOf(seg, to)
	if v == nil {
		return // nor can it be evicted
	}
	defer v.release()
	now := time.Now()
	for ; at+grainBytes <= to; at += grainBytes {
		v.grain(at).written(now)
	}
}
