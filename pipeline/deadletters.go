package pipeline

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of the records in the dead-letter and late streams of a sink. Key, value
// and all other headers are those of the record itself; its time is in HeaderTime.
const (
	HeaderOriginStream    = "daybook.origin.stream"
	HeaderOriginPartition = "daybook.origin.partition"
	HeaderOriginOffset    = "daybook.origin.offset"
	HeaderSink            = "daybook.sink"      // the sink that did not take it
	HeaderReason          = "daybook.reason"    // why
	HeaderAt              = "daybook.at"        // when, RFC 3339
	HeaderWatermark       = "daybook.watermark" // of a late record: the watermark it missed, µs
	HeaderLateness        = "daybook.lateness"  // and by how much, µs
)

// keepAside is how long dead letters and late records are kept: until someone has
// looked at them, which may take a while.
const keepAside = 90 * 24 * time.Hour

// aside returns the record as it is kept in a stream beside the sink.
//
// Guarantee 16.
func aside(stream, sink, reason string, r *Record, more ...kgo.RecordHeader) *kgo.Record {
	k := &kgo.Record{}
	toKafka(k, r, timestamps{none: true}, make([]kgo.RecordHeader, len(r.Headers)+stampHeaders), nil)
	k.Topic, k.Partition, k.Timestamp = stream, 0, time.Now() // how long it is kept goes by this
	add := func(key, value string) {
		k.Headers = append(k.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	add(HeaderOriginStream, r.Stream)
	add(HeaderOriginPartition, strconv.Itoa(int(r.Partition)))
	add(HeaderOriginOffset, strconv.FormatInt(r.Offset, 10))
	add(HeaderSink, sink)
	add(HeaderReason, reason)
	add(HeaderAt, time.Now().UTC().Format(time.RFC3339Nano))
	k.Headers = append(k.Headers, more...)
	return k
}

// lateHeaders say by how much a record was late.
func lateHeaders(r released) []kgo.RecordHeader {
	return []kgo.RecordHeader{
		{Key: HeaderWatermark, Value: strconv.AppendInt(nil, r.watermark, 10)},
		{Key: HeaderLateness, Value: strconv.AppendInt(nil, r.lateness, 10)},
	}
}
