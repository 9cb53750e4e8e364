package kafka

import (
	"encoding/binary"
	"net"

	"github.com/daybook-data/daybook/cluster"
)

// fetchEncoder writes a fetch answer as a list of buffers: what it encodes itself
// lies in one growing buffer, between whose parts stand the journal's own bytes.
type fetchEncoder struct {
	version  int16
	flexible bool
	b        []byte
	cuts     []cut
}

// cut is where bytes of the journal stand: before b[at].
type cut struct {
	at     int
	pieces [][]byte
}

// fetchError writes an answer that is an error as a whole.
func (w *answerWriter) fetchError(h header, code int16) error {
	e := newFetchEncoder(w, h, code, 0)
	e.length(0)
	e.tags()
	return w.end(e.b, nil)
}

// fetchAnswer writes the answer for results, which stand in the order of topics.
func (w *answerWriter) fetchAnswer(h header, session int32, topics []fetchTopic, results [][]fetched) error {
	e := newFetchEncoder(w, h, 0, session)
	answered := make([]int, len(topics)) // partitions
	n := 0
	for i := range results {
		for j := range results[i] {
			if !results[i][j].omit {
				answered[i]++
			}
		}
		if answered[i] > 0 || len(results[i]) == 0 {
			n++
		}
	}
	e.length(n)
	moved := false // a part is to be read elsewhere
	for i, t := range topics {
		if answered[i] == 0 && len(results[i]) > 0 {
			continue
		}
		e.topic(t)
		e.length(answered[i])
		for j := range results[i] {
			if f := &results[i][j]; !f.omit {
				e.partition(f)
				moved = moved || f.leader != noLeader
			}
		}
		e.tags()
	}
	if moved && e.version >= 16 {
		e.endpoints(w.conn.brokers())
	} else {
		e.tags()
	}
	return w.end(e.b, e.buffers())
}

func newFetchEncoder(w *answerWriter, h header, code int16, session int32) *fetchEncoder {
	e := &fetchEncoder{version: h.version, flexible: apis[h.key].flexible(h.version), b: w.begin(h)}
	e.int32(0) // throttle
	if e.version >= 7 {
		e.int16(code)
		e.int32(session)
	}
	return e
}

func (e *fetchEncoder) topic(t fetchTopic) {
	if e.version >= 13 {
		e.b = append(e.b, t.id[:]...)
		return
	}
	e.string(t.name)
}

func (e *fetchEncoder) partition(f *fetched) {
	bounds := f.data.Bounds
	if f.err != nil {
		bounds = cluster.Bounds{Start: -1, LastStable: -1, HighWatermark: -1}
	}
	e.int32(f.index)
	e.int16(errorCode(f.err))
	e.int64(bounds.HighWatermark)
	e.int64(bounds.LastStable)
	if e.version >= 5 {
		e.int64(bounds.Start)
	}
	e.length(len(f.data.Aborted))
	for _, a := range f.data.Aborted {
		e.int64(a.ProducerID)
		e.int64(a.FirstOffset)
		e.tags()
	}
	if e.version >= 11 {
		preferred := int32(-1) // this one
		if f.readFrom > 0 {
			preferred = f.readFrom
		}
		e.int32(preferred)
	}
	e.length(f.data.Bytes)
	if f.data.Bytes > 0 {
		e.cuts = append(e.cuts, cut{len(e.b), f.data.Pieces})
	}
	e.partitionTags(f)
}

// partitionTags writes the tagged fields of a partition.
func (e *fetchEncoder) partitionTags(f *fetched) {
	if !e.flexible {
		return
	}
	count := len(e.b)
	e.b = append(e.b, 0)
	if d := f.diverging; d != nil {
		e.b[count]++
		e.b = append(e.b, 0, 13) // tag 0, 13 bytes
		e.int32(d.epoch)
		e.int64(d.end)
		e.b = append(e.b, 0)
	}
	if f.leader != noLeader {
		e.b[count]++
		e.b = append(e.b, 1, 9) // tag 1, 9 bytes
		e.int32(f.leader.id)
		e.int32(f.leader.epoch)
		e.b = append(e.b, 0)
	}
}

// endpoints writes the tagged field of the answer that says where the nodes are.
func (e *fetchEncoder) endpoints(brokers []broker) {
	field := fetchEncoder{flexible: true}
	field.length(len(brokers))
	for _, b := range brokers {
		field.int32(b.id)
		field.string(b.host)
		field.int32(b.port)
		if b.rack == nil {
			field.b = append(field.b, 0)
		} else {
			field.string(*b.rack)
		}
		field.tags()
	}
	e.b = append(e.b, 1, 0) // one field, tag 0
	e.b = binary.AppendUvarint(e.b, uint64(len(field.b)))
	e.b = append(e.b, field.b...)
}

// buffers returns the answer's pieces in order; nil if there is only one.
func (e *fetchEncoder) buffers() net.Buffers {
	if len(e.cuts) == 0 {
		return nil
	}
	var all net.Buffers
	from := 0
	for _, c := range e.cuts {
		all = append(all, e.b[from:c.at])
		all = append(all, c.pieces...)
		from = c.at
	}
	if from < len(e.b) {
		all = append(all, e.b[from:])
	}
	return all
}

func (e *fetchEncoder) int16(v int16) { e.b = binary.BigEndian.AppendUint16(e.b, uint16(v)) }
func (e *fetchEncoder) int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *fetchEncoder) int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

// length writes the length of an array or of bytes.
func (e *fetchEncoder) length(n int) {
	if e.flexible {
		e.b = binary.AppendUvarint(e.b, uint64(n)+1)
		return
	}
	e.int32(int32(n))
}

func (e *fetchEncoder) string(s string) {
	if e.flexible {
		e.length(len(s))
	} else {
		e.int16(int16(len(s)))
	}
	e.b = append(e.b, s...)
}

// tags writes an empty set of tagged fields.
func (e *fetchEncoder) tags() {
	if e.flexible {
		e.b = append(e.b, 0)
	}
}
