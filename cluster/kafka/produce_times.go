package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// settleTimes reads the records of a batch, compressed or not: consumers end at one whose records are not what its header
// says. It makes the header say when its latest record is, which it is found by: some clients leave it out, or say it of
// another record, and Apache Kafka writes it for all. It returns the earliest time.
func (s *Server) settleTimes(h *storage.Header, data []byte) (earliest int64, err error) {
	earliest, latest, err := s.records.Times(data)
	if err == nil && latest == h.MaxTimestamp && !h.LogAppendTime() {
		return earliest, nil
	}
	if _, damaged := storage.CheckBatch(data); damaged != nil {
		return 0, damaged // nothing of it can be believed
	}
	if err != nil {
		return 0, err
	}
	storage.SetCreateTime(data, latest)
	*h, err = storage.ParseHeader(data)
	return earliest, err
}

// checkTimes refuses times that the stream's bounds exclude.
func checkTimes(earliest, latest int64, policy metadata.Policy, now time.Time) error {
	// A record without a time (-1) is of no time, not of 1969.
	if earliest >= 0 && now.Sub(time.UnixMilli(earliest)) > policy.MaxBefore ||
		latest >= 0 && time.UnixMilli(latest).Sub(now) > policy.MaxAfter {
		return kerr.InvalidTimestamp
	}
	return nil
}
