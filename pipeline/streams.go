package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Streams that Daybook keeps for itself.
const (
	CheckpointStream = "daybook.checkpoints" // checkpoints too long for an offset commit
	FrontierStream   = "daybook.frontier"    // how far sources got, see frontier
)

// What a sink's records that were put aside are named by.
const (
	deadPrefix = "daybook.dead."
	latePrefix = "daybook.late."
)

// DeadStream returns the stream of the records that a sink's destination refused.
func DeadStream(pipeline, sink string) string { return deadPrefix + pipeline + "." + sink }

// LateStream returns the stream of the records that came too late for a sink.
func LateStream(pipeline, sink string) string { return latePrefix + pipeline + "." + sink }

// StreamInfo is what a client needs to know of a stream.
type StreamInfo struct {
	Name       string
	ID         string // of this very stream, not of another that had its name
	Partitions int
	// MaxMessage is the greatest batch that the stream takes, in bytes.
	MaxMessage int
	// AppendTime says that the journal replaces timestamps by its own.
	AppendTime bool

	// oldest and newest are how far a timestamp may lie before and after its append for
	// the journal to take the record, and to keep it as long as others; 0 is any.
	oldest, newest time.Duration
	// led says that all of its partitions have a leader.
	led bool
	// byAppend says that retention goes by when a record was appended, whatever its
	// timestamp: the journal is a Daybook.
	byAppend bool
}

// Stream describes a stream. The error is kerr.UnknownTopicOrPartition where there is
// none of that name.
func (j *Journal) Stream(ctx context.Context, name string) (StreamInfo, error) {
	topics, err := j.admin.ListTopics(ctx, name)
	if err != nil {
		return StreamInfo{}, fmt.Errorf("asking for stream %s: %w", name, err)
	}
	t := topics[name]
	if t.Err == nil && len(t.Partitions) == 0 {
		t.Err = kerr.UnknownTopicOrPartition
	}
	if t.Err != nil {
		return StreamInfo{}, fmt.Errorf("asking for stream %s: %w", name, t.Err)
	}
	info := StreamInfo{Name: name, ID: t.ID.String(), Partitions: len(t.Partitions), MaxMessage: defaultMaxMessage, led: true}
	for _, p := range t.Partitions {
		info.led = info.led && p.Err == nil
	}
	j.describe(ctx, &info)
	return info, nil
}

// defaultMaxMessage is Kafka's limit where a stream does not say its own.
const defaultMaxMessage = 1_048_588

// describe fills in what the stream's settings say. A broker may refuse to show
// them; then the defaults of Kafka stand.
func (j *Journal) describe(ctx context.Context, info *StreamInfo) {
	all, err := j.admin.DescribeTopicConfigs(ctx, info.Name)
	if err != nil {
		return
	}
	config, err := all.On(info.Name, nil)
	if err != nil || config.Err != nil {
		return
	}
	retain := time.Duration(0)
	for _, c := range config.Configs {
		switch c.Key {
		case "max.message.bytes":
			if n, err := strconv.Atoi(c.MaybeValue()); err == nil && n > 0 {
				info.MaxMessage = n
			}
		case "message.timestamp.type":
			info.AppendTime = c.MaybeValue() == "LogAppendTime"
		case "message.timestamp.before.max.ms":
			info.oldest = milliseconds(c.MaybeValue())
		case "message.timestamp.after.max.ms":
			info.newest = milliseconds(c.MaybeValue())
		case "retention.ms":
			retain = milliseconds(c.MaybeValue())
		case settingDurability:
			info.byAppend = true
		}
	}
	// Kafka goes by timestamps in deciding what has expired: an import of old events
	// would be gone before anyone has read it.
	if !info.byAppend && retain > 0 && (info.oldest == 0 || retain/2 < info.oldest) {
		info.oldest = retain / 2
	}
}

// milliseconds reads a setting; 0 stands for no bound.
func milliseconds(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// Streams returns the names of all streams, sorted.
func (j *Journal) Streams(ctx context.Context) ([]string, error) {
	topics, err := j.admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing streams: %w", err)
	}
	return slices.Sorted(maps.Keys(topics)), nil
}

// Ends returns the offset behind the last record of each partition: what a reader
// that sees everything may have to wait for.
func (j *Journal) Ends(ctx context.Context, streams ...string) (map[Partition]int64, error) {
	return offsets(j.admin.ListEndOffsets(ctx, streams...))
}

// epochs returns the leader epoch of each partition of a stream, as its leader tells it beside the end: all that was
// acknowledged before is of this epoch or an earlier one. Partitions are missing whose leaders don't say.
func (j *Journal) epochs(ctx context.Context, stream string) (map[int32]int32, error) {
	listed, err := j.admin.ListEndOffsets(ctx, stream)
	if _, err := offsets(listed, err); err != nil {
		return nil, err
	}
	out := map[int32]int32{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.LeaderEpoch >= 0 {
			out[o.Partition] = o.LeaderEpoch
		}
	})
	return out, nil
}

// CommittedEnds returns the offset behind the last record of each partition that
// belongs to no transaction still open.
func (j *Journal) CommittedEnds(ctx context.Context, streams ...string) (map[Partition]int64, error) {
	return offsets(j.admin.ListCommittedOffsets(ctx, streams...))
}

// Starts returns the offset of the first record of each partition that is still kept.
func (j *Journal) Starts(ctx context.Context, streams ...string) (map[Partition]int64, error) {
	return offsets(j.admin.ListStartOffsets(ctx, streams...))
}

// FirstAfter returns the first offset of each partition whose record's event time is
// at or after t, and the partition's end where there is none.
func (j *Journal) FirstAfter(ctx context.Context, t time.Time, streams ...string) (map[Partition]int64, error) {
	// Kafka knows milliseconds: start at the one that t is in.
	return offsets(j.admin.ListOffsetsAfterMilli(ctx, t.UnixMilli(), streams...))
}

func offsets(listed kadm.ListedOffsets, err error) (map[Partition]int64, error) {
	if err == nil {
		err = listed.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("there is no such stream (`daybook streams` lists those that are there): %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for offsets: %w", err)
	}
	out := map[Partition]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		out[Partition{Stream: o.Topic, Number: o.Partition}] = o.Offset
	})
	return out, nil
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
