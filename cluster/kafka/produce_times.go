package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/storage"
)

// settleTimes makes the header of a batch say when its latest record is, which it is found by: some clients leave it out,
// or say it of another record, and Apache Kafka writes it for all. It returns the earliest time that is known. What is
// compressed is read only if its header can't be right.
func settleTimes(h *storage.Header, data []byte) (earliest int64, err error) {
	if h.Compression() != storage.None && h.MaxTimestamp >= h.BaseTimestamp && !h.LogAppendTime() {
		return h.BaseTimestamp, nil
	}
	earliest, latest, err := storage.RecordTimes(data)
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

// checkTimes refuses times that the stream's bounds exclude. Of a compressed batch the first record's time stands for the
// earliest, which is what can be known without unpacking it.
func checkTimes(earliest, latest int64, policy metadata.Policy, now time.Time) error {
	// A record without a time (-1) is of no time, not of 1969.
	if earliest >= 0 && now.Sub(time.UnixMilli(earliest)) > policy.MaxBefore ||
		latest >= 0 && time.UnixMilli(latest).Sub(now) > policy.MaxAfter {
		return kerr.InvalidTimestamp
	}
	return nil
}
