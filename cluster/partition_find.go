package cluster

import "github.com/daybook-data/daybook/storage"

// TimedOffset is an offset found by time; both fields are -1 if there is none.
type TimedOffset struct {
	Offset      int64
	Millis      int64
	LeaderEpoch int32
}

// OffsetForTime returns the first record, in the order of offsets, whose time is
// at or after the given one.
func (p *Partition) OffsetForTime(millis int64) (TimedOffset, error) {
	return p.find(func(j *storage.Journal) (storage.Found, bool, error) {
		return j.OffsetForTime(uint32(p.number), millis)
	})
}

// MaxTimestamp returns the record with the latest time.
func (p *Partition) MaxTimestamp() (TimedOffset, error) {
	return p.find(func(j *storage.Journal) (storage.Found, bool, error) {
		return j.MaxTimestamp(uint32(p.number))
	})
}

func (p *Partition) find(look func(*storage.Journal) (storage.Found, bool, error)) (TimedOffset, error) {
	none := TimedOffset{Offset: -1, Millis: -1, LeaderEpoch: -1}
	j, err := p.handle.reader(false)
	if err != nil {
		return none, err
	}
	f, ok, err := look(j)
	if err != nil || !ok {
		return none, err
	}
	return TimedOffset{Offset: f.Offset, Millis: f.Timestamp, LeaderEpoch: f.LeaderEpoch}, nil
}

// EpochEnd returns the largest leader epoch up to the asked one that the
// partition knows, and the offset behind its last record; the asked one and the
// partition's start if all that is left is newer, -1 and -1 if there is no such epoch
// yet. It may lack what another leader has appended that was elected a moment ago:
// before a client is told that it has read what is not there, see [Partition.BoundsSince].
func (p *Partition) EpochEnd(epoch int32) (int32, int64, error) {
	j, err := p.handle.reader(false)
	if err != nil {
		return -1, -1, err
	}
	if epoch > p.LeaderEpoch() {
		return -1, -1, nil // nobody knows yet where it will end
	}
	e, end := j.EpochEnd(uint32(p.number), epoch)
	return e, end, nil
}
