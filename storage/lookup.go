package storage

import (
	"bytes"
	"errors"
	"iter"
	"slices"
)

// ErrNoKeyIndex says that a journal keeps no key index.
var ErrNoKeyIndex = errors.New("no key index is kept")

// Record is a record that was looked up. It owns its bytes.
type Record struct {
	Partition  uint32
	Offset     int64
	Timestamp  int64 // ms
	Stamp      int64 // the leader's time of the append, µs
	Key, Value []byte
	Headers    []RecordHeader
}

// Find returns the committed records that have a key, of all partitions, in the order in which they were appended, or
// the other way round. Records of transactions that are open or were aborted are left out. The key itself is compared,
// not only its hash. It ends with an error if it cannot look everywhere: a *DamageError, that of the disk, or
// ErrNoKeyIndex.
func (j *Journal) Find(key []byte, newestFirst bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if !j.indexer.keys.Load() {
			yield(Record{}, ErrNoKeyIndex)
			return
		}
		segs, release := j.segments()
		defer release()
		if len(segs) == 0 {
			yield(Record{}, ErrClosed)
			return
		}
		hash := hashOf(key)
		walk := j.walker()
		defer j.walkers.Put(walk)
		for i := range segs {
			last := i == len(segs)-1
			if newestFirst {
				i = len(segs) - 1 - i
				last = i == len(segs)-1
			}
			rels, err := j.indexer.batchesOf(segs[i], last, hash)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if newestFirst {
				slices.Reverse(rels)
			}
			for _, rel := range rels {
				found, err := j.recordsOf(walk, segs[i], rel, key)
				if err != nil {
					yield(Record{}, err)
					return
				}
				if newestFirst {
					slices.Reverse(found)
				}
				for _, r := range found {
					if !yield(r, nil) {
						return
					}
				}
			}
		}
	}
}

// walker returns one that is not in use: the memory that codecs need costs more than most lookups.
func (j *Journal) walker() *walker {
	if w, ok := j.walkers.Get().(*walker); ok {
		return w
	}
	return new(walker)
}

// recordsOf returns the records of a batch that have a key and may be seen.
func (j *Journal) recordsOf(walk *walker, seg *segment, rel uint32, key []byte) ([]Record, error) {
	j.mu.RLock()
	e := entryAround(seg.entries, rel)
	j.mu.RUnlock()
	h, d, data, err := readBatch(seg, e, rel)
	if err != nil {
		return nil, err
	}
	b := parseHeader(data)
	start, end := j.Bounds(d.partition)
	if b.Transactional() {
		end = min(end, j.LastStable(d.partition))
	}
	if b.Control() || b.BaseOffset >= end || j.abortedBatch(d.partition, b) {
		return nil, nil
	}
	var found []Record
	err = walk.each(b, data[batchHeaderBytes:], func(r *plainRecord) error {
		if r.key == nil || !bytes.Equal(r.key, key) || r.offset < start {
			return nil
		}
		found = append(found, r.own(d.partition, h.stamp))
		return nil
	})
	if errors.Is(err, ErrInvalidBatch) { // readers get it as it came, up to where it can be read
		err = nil
	}
	return found, err
}

// abortedBatch says whether a batch belongs to an aborted transaction.
func (j *Journal) abortedBatch(partition uint32, b Header) bool {
	if !b.Transactional() {
		return false
	}
	for _, a := range j.Aborted(partition, b.BaseOffset, b.BaseOffset+1) {
		if a.Producer == b.ProducerID {
			return true
		}
	}
	return false
}

// own copies a record.
func (r *plainRecord) own(partition uint32, stamp int64) Record {
	o := Record{
		Partition: partition, Offset: r.offset, Timestamp: r.timestamp, Stamp: stamp,
		Key: bytes.Clone(r.key), Value: bytes.Clone(r.value),
	}
	r.eachHeader(func(key, value []byte) bool {
		o.Headers = append(o.Headers, RecordHeader{Key: string(key), Value: bytes.Clone(value)})
		return true
	})
	return o
}

// readBatch reads and checks the batch at a file offset, of which only the frame that holds it is known.
func readBatch(seg *segment, e entry, rel uint32) (h frameHeader, d dirEntry, data []byte, err error) {
	var dir directory
	if err := dir.read(seg, e, rel); err != nil {
		return h, d, nil, err
	}
	h = dir.header
	d, ok := dir.find(seg, rel)
	if !ok {
		return h, d, nil, seg.damage(int64(e.rel), int64(rel), "no batch begins where the key index says")
	}
	data = make([]byte, d.length)
	if err := seg.read(data, int64(rel)); err != nil {
		return h, d, nil, err
	}
	if reason := checkStored(data, d, h.term); reason != "" {
		return h, d, nil, seg.damage(int64(rel), int64(rel+d.length), reason)
	}
	return h, d, data, nil
}
