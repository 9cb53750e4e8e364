package node

import (
	"context"
	"log/slog"
	"slices"

	"github.com/daybook-data/daybook/pipeline"
)

// StreamInfo is a stream as `daybook streams` shows it.
type StreamInfo struct {
	Name       string          `json:"name"`
	ID         string          `json:"id"`
	Partitions []PartitionInfo `json:"partitions"`
}

// PartitionInfo is what a partition holds: the records from First up to, not including, Next.
type PartitionInfo struct {
	Partition int32 `json:"partition"`
	First     int64 `json:"first"`
	Next      int64 `json:"next"`
}

// Streams lists the streams of a journal by name; with own, also those that Daybook keeps
// for itself.
func Streams(ctx context.Context, where Where, own bool, log *slog.Logger) (list []StreamInfo, err error) {
	c, err := where.config()
	if err != nil {
		return nil, err
	}
	j, done, err := beside(ctx, c, log)
	if err != nil {
		return nil, err
	}
	defer closing(done, &err)
	names, err := j.Streams(ctx)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !own && pipeline.IsInternal(n) })
	slices.Sort(names)
	for _, name := range names {
		info, err := streamInfo(ctx, j, name)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

func streamInfo(ctx context.Context, j *pipeline.Journal, name string) (StreamInfo, error) {
	s, err := j.Stream(ctx, name)
	if err != nil {
		return StreamInfo{}, err
	}
	starts, err := j.Starts(ctx, name)
	if err != nil {
		return StreamInfo{}, err
	}
	ends, err := j.Ends(ctx, name)
	if err != nil {
		return StreamInfo{}, err
	}
	info := StreamInfo{Name: name, ID: s.ID, Partitions: make([]PartitionInfo, len(ends))}
	for p, end := range ends {
		info.Partitions[p.Number] = PartitionInfo{Partition: p.Number, First: starts[p], Next: end}
	}
	return info, nil
}

// closing adds the error of closing something to the one that a function returns.
func closing(done func() error, err *error) {
	if e := done(); *err == nil {
		*err = e
	}
}
