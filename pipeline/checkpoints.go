package pipeline

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A cursor is what a consumer group holds of one partition: an offset, and beside it
// what else a source or sink needs to go on from there.
type cursor struct {
	offset int64
	epoch  int32  // the leader epoch of the record before the offset; -1 where it is not known
	state  []byte // nil where there is nothing to say
}

// maxMetadata is how much text an offset commit carries; Kafka refuses 4,097.
const maxMetadata = 4000

// keepCheckpoints is how long a state that was too long for an offset commit is kept
// in CheckpointStream.
const keepCheckpoints = 30 * 24 * time.Hour

// States in an offset commit's metadata begin with a letter that says their form. All
// is base64, because Kafka's tools take metadata for text.
const (
	statePlain    = "p:" // base64
	stateDeflated = "z:" // base64 of DEFLATE
	stateRecord   = "r:" // offset of a record in CheckpointStream
)

// packState returns a state as metadata. What does not fit is appended to
// CheckpointStream first, so that the commit never names what is not there.
func (j *Journal) packState(ctx context.Context, group string, p Partition, state []byte) (string, error) {
	if state == nil {
		return "", nil
	}
	plain := statePlain + base64.RawStdEncoding.EncodeToString(state)
	if len(plain) <= maxMetadata {
		return plain, nil
	}
	small := deflate(state)
	packed := stateDeflated + base64.RawStdEncoding.EncodeToString(small)
	if len(packed) <= maxMetadata {
		return packed, nil
	}
	if err := j.ensureOwn(ctx, CheckpointStream, keepCheckpoints); err != nil {
		return "", err
	}
	k := &kgo.Record{
		Topic: CheckpointStream, Key: fmt.Appendf(nil, "%s %s/%d", group, p.Stream, p.Number), Value: small,
	}
	if err := j.append(ctx, k); err != nil {
		return "", fmt.Errorf("appending a checkpoint of %s: %w", group, err)
	}
	return stateRecord + strconv.FormatInt(k.Offset, 10), nil
}

// unpackState is the reverse of packState.
func (j *Journal) unpackState(ctx context.Context, group string, metadata string) ([]byte, error) {
	switch {
	case metadata == "":
		return nil, nil
	case strings.HasPrefix(metadata, statePlain):
		return base64.RawStdEncoding.DecodeString(metadata[2:])
	case strings.HasPrefix(metadata, stateDeflated):
		b, err := base64.RawStdEncoding.DecodeString(metadata[2:])
		if err != nil {
			return nil, err
		}
		return inflate(b)
	case strings.HasPrefix(metadata, stateRecord):
		return j.readState(ctx, group, metadata[2:])
	}
	return nil, fmt.Errorf("the metadata of its offsets is not of this program (%.20q)", metadata)
}

func (j *Journal) readState(ctx context.Context, group, at string) ([]byte, error) {
	offset, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return nil, err
	}
	p := Partition{Stream: CheckpointStream}
	starts, err := j.Starts(ctx, CheckpointStream)
	if err != nil {
		return nil, err
	}
	var k *kgo.Record
	if starts[p] <= offset {
		if k, err = j.recordAt(ctx, p, offset, offset+1); err != nil {
			return nil, err
		}
	}
	if k == nil || !strings.HasPrefix(string(k.Key), group+" ") {
		return nil, &StopError{
			Code: "checkpoint-expired", Where: fmt.Sprintf("%s@%d", CheckpointStream, offset),
			Fix: fmt.Sprintf("delete the consumer group %s and start anew", group),
			Err: errors.New("the checkpoint that the cursor names is no longer kept"),
		}
	}
	return inflate(k.Value)
}

func deflate(b []byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = w.Write(b) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func inflate(b []byte) ([]byte, error) {
	out, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
	if err != nil {
		return nil, fmt.Errorf("inflating a checkpoint: %w", err)
	}
	return out, nil
}

// saveCursors commits cursors of a group that has no members.
func (j *Journal) saveCursors(ctx context.Context, group string, cursors map[Partition]cursor) error {
	offsets := kadm.Offsets{}
	for p, c := range cursors {
		metadata, err := j.packState(ctx, group, p, c.state)
		if err != nil {
			return err
		}
		offsets.Add(kadm.Offset{Topic: p.Stream, Partition: p.Number, At: c.offset, LeaderEpoch: c.epoch, Metadata: metadata})
	}
	if err := j.admin.CommitAllOffsets(ctx, group, offsets); err != nil {
		return fmt.Errorf("committing offsets of group %s: %w", group, err)
	}
	return nil
}

// loadCursors returns what the group holds of the streams; partitions without an
// offset are missing.
func (j *Journal) loadCursors(ctx context.Context, group string, streams ...string) (map[Partition]cursor, error) {
	held, err := j.groupOffsets(ctx, group, streams...)
	if err != nil {
		return nil, err
	}
	out := map[Partition]cursor{}
	for p, o := range held {
		state, err := j.unpackState(ctx, group, o.Metadata)
		if err != nil {
			return nil, fmt.Errorf("reading the checkpoint of group %s: %w", group, err)
		}
		out[p] = cursor{offset: o.At, epoch: o.LeaderEpoch, state: state}
	}
	return out, nil
}

// groupOffsets returns what the group has committed of the streams, as it is.
func (j *Journal) groupOffsets(ctx context.Context, group string, streams ...string) (map[Partition]kadm.Offset, error) {
	fetched, err := j.admin.FetchOffsetsForTopics(ctx, group, streams...)
	if err == nil {
		err = fetched.Error()
	}
	out := map[Partition]kadm.Offset{}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the offsets of group %s: %w", group, err)
	}
	fetched.Offsets().Each(func(o kadm.Offset) {
		if o.At >= 0 {
			out[Partition{Stream: o.Topic, Number: o.Partition}] = o
		}
	})
	return out, nil
}
