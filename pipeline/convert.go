package pipeline

import (
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// stampHeaders are the most headers that toKafka adds.
const stampHeaders = 5

// timestamps says which event times a stream keeps as Kafka's timestamps. All others
// stand in HeaderTime, and the timestamp is the append stamp.
type timestamps struct {
	none     bool  // the journal puts its own in their place
	from, to int64 // µs
}

// latestTimestamp is in the year 2262: the client counts a timestamp in nanoseconds on its
// way to milliseconds, and would turn a later one into another century.
const latestTimestamp = math.MaxInt64 / 1000

// timestamps returns the rule for what is appended now.
func (s *StreamInfo) timestamps() timestamps {
	t := timestamps{none: s.AppendTime, to: latestTimestamp} // Kafka knows no time before 1970
	now := time.Now()
	if s.oldest > 0 {
		t.from = max(now.Add(-s.oldest).UnixMicro(), 0)
	}
	if s.newest > 0 {
		// Clocks differ: keep a little off the bound.
		t.to = min(now.Add(s.newest-min(s.newest/10, time.Minute)).UnixMicro(), latestTimestamp)
	}
	return t
}

// toKafka fills k with the record. headers is room for the record's own headers and
// stampHeaders more; buf is room for their text. What is left of both is returned.
func toKafka(k *kgo.Record, r *Record, times timestamps, headers []kgo.RecordHeader, buf []byte) ([]kgo.RecordHeader, []byte) {
	k.Topic, k.Partition = r.Stream, r.Partition
	k.Key, k.Value = r.Key, r.Value
	outside := times.none || r.Time < times.from || r.Time > times.to
	k.Timestamp = time.UnixMicro(r.Time)
	if outside {
		k.Timestamp = time.UnixMicro(r.Stamp)
	}

	n := 0
	add := func(key string, value []byte) {
		headers[n] = kgo.RecordHeader{Key: key, Value: value}
		n++
	}
	addText := func(key, value string) {
		start := len(buf)
		buf = append(buf, value...)
		add(key, buf[start:len(buf):len(buf)])
	}
	addNumber := func(key string, v int64) {
		start := len(buf)
		buf = strconv.AppendInt(buf, v, 10)
		add(key, buf[start:len(buf):len(buf)])
	}
	addNumber(HeaderStamp, r.Stamp)
	if r.Source != "" {
		addText(HeaderSource, r.Source)
	}
	if r.Position != "" {
		addText(HeaderPosition, r.Position)
	}
	if r.Table != "" {
		addText(HeaderTable, r.Table)
	}
	if outside || r.Time%1000 != 0 {
		addNumber(HeaderTime, r.Time)
	}
	for _, h := range r.Headers {
		add(h.Key, h.Value)
	}
	k.Headers = headers[:n:n]
	return headers[n:], buf
}

// fromKafka returns the record. Nothing is copied but short texts, which names keeps
// so that equal ones are one.
func fromKafka(k *kgo.Record, names interner) Record {
	r := Record{
		Stream: k.Topic, Partition: k.Partition, Offset: k.Offset,
		Key: k.Key, Value: k.Value,
		Time: k.Timestamp.UnixMicro(),
	}
	r.Stamp = r.Time // a foreign record: the best there is, and right with LogAppendTime
	others := 0
	for i := range k.Headers {
		h := &k.Headers[i]
		switch h.Key {
		case HeaderStamp:
			setNumber(&r.Stamp, h.Value)
		case HeaderTime:
			setNumber(&r.Time, h.Value)
		case HeaderSource:
			r.Source = names.text(h.Value)
		case HeaderPosition:
			r.Position = string(h.Value)
		case HeaderTable:
			r.Table = names.text(h.Value)
		default:
			others++
		}
	}
	if others > 0 {
		r.Headers = otherHeaders(k.Headers, others)
	}
	return r
}

// interner keeps one copy of each short text that comes again and again. Its size is
// bounded; not safe for concurrent use. A nil interner keeps nothing.
type interner map[string]string

func (in interner) text(b []byte) string {
	if s, ok := in[string(b)]; ok {
		return s
	}
	s := string(b)
	if in != nil && len(in) < 4096 {
		in[s] = s
	}
	return s
}

// setNumber sets v where b is a number; a header that is not ours to read is left.
func setNumber(v *int64, b []byte) {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*v = n
	}
}

func otherHeaders(all []kgo.RecordHeader, n int) []Header {
	out := make([]Header, 0, n)
	for _, h := range all {
		switch h.Key {
		case HeaderStamp, HeaderTime, HeaderSource, HeaderPosition, HeaderTable:
		default:
			out = append(out, Header{Key: h.Key, Value: h.Value})
		}
	}
	return out
}

// header returns the value of a header of the record.
func header(k *kgo.Record, key string) []byte {
	for i := range k.Headers {
		if k.Headers[i].Key == key {
			return k.Headers[i].Value
		}
	}
	return nil
}

// size is about what the record takes in memory while it is on its way.
func (r *Record) size() int64 {
	n := len(r.Key) + len(r.Value) + len(r.Position) + 160
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}
