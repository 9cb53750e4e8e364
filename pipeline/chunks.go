package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// HeaderChunk marks a piece of a record that is longer than its stream takes:
// "2/5/1790000000000000" is the second of five of the record with that number. Pieces
// of a record lie in one partition in their order, others' records perhaps between
// them; each repeats the key, and only the last has the record's position.
const HeaderChunk = "daybook.chunk"

// chunk is the content of HeaderChunk.
type chunk struct {
	number, of int // number counts from 1
	id         int64
}

func (c chunk) text() string {
	return fmt.Sprintf("%d/%d/%d", c.number, c.of, c.id)
}

// chunkOf returns what the record says about being a piece.
func chunkOf(k *kgo.Record) (c chunk, ok bool, err error) {
	value := header(k, HeaderChunk)
	if value == nil {
		return c, false, nil
	}
	parts := strings.Split(string(value), "/")
	if len(parts) == 3 {
		var bad [3]error
		c.number, bad[0] = strconv.Atoi(parts[0])
		c.of, bad[1] = strconv.Atoi(parts[1])
		c.id, bad[2] = strconv.ParseInt(parts[2], 10, 64)
		if bad == [3]error{} && c.number >= 1 && c.number <= c.of {
			return c, true, nil
		}
	}
	return c, false, fmt.Errorf("%w: %.40q, want number/of/id", errChunkHeader, value)
}

// errChunkHeader says that HeaderChunk is not what this program writes.
var errChunkHeader = errors.New("the header " + HeaderChunk + " is broken")

// split returns the pieces of a record whose value is longer than limit.
func split(r *Record, limit int, firstStamp int64) []Record {
	of := (len(r.Value) + limit - 1) / limit
	pieces := make([]Record, of)
	for i := range pieces {
		p := *r
		p.Value = r.Value[i*limit : min((i+1)*limit, len(r.Value))]
		p.Stamp = firstStamp + int64(i)
		if i < of-1 {
			p.Position = ""
		}
		mark := Header{Key: HeaderChunk, Value: []byte(chunk{number: i + 1, of: of, id: firstStamp}.text())}
		p.Headers = append(append(make([]Header, 0, len(r.Headers)+1), r.Headers...), mark)
		pieces[i] = p
	}
	return pieces
}

// joiner puts the pieces of one partition's records together again. A record is
// there with its last piece and has that one's offset. Pieces whose rest never came,
// because their writer crashed and wrote the record anew, are forgotten with the next
// record of the same source.
type joiner struct {
	open map[string]*joined // by source
}

// joined is a record of which some pieces are there.
type joined struct {
	chunk
	values [][]byte
	first  int64 // offset of the first piece
}

// orphanError says that a piece came whose earlier ones the joiner has not seen.
type orphanError struct {
	chunk
	source string
}

func (e *orphanError) Error() string {
	return fmt.Sprintf("piece %d of %d of a long record of source %q: the pieces before it are missing", e.number, e.of, e.source)
}

// add takes the next record of the partition, in the order of offsets. whole is nil
// while pieces are missing. The error is an *orphanError, or says that the header is
// broken; the joiner is then as before.
func (j *joiner) add(k *kgo.Record) (whole *kgo.Record, err error) {
	c, isChunk, err := chunkOf(k)
	if err != nil {
		return nil, err
	}
	if !isChunk {
		if len(j.open) > 0 {
			delete(j.open, string(header(k, HeaderSource)))
		}
		return k, nil
	}
	source := string(header(k, HeaderSource))
	o := j.open[source]
	switch {
	case c.number == 1:
		o = &joined{chunk: c, first: k.Offset}
		if j.open == nil {
			j.open = map[string]*joined{}
		}
		j.open[source] = o
	case o == nil || o.id != c.id || o.of != c.of || c.number > len(o.values)+1:
		return nil, &orphanError{chunk: c, source: source}
	case c.number <= len(o.values):
		return nil, nil // read before, while looking back
	}
	o.values = append(o.values, k.Value)
	if c.number < c.of {
		return nil, nil
	}
	delete(j.open, source)
	r := *k
	r.Value = bytes.Join(o.values, nil)
	r.Headers = withoutChunk(k.Headers)
	return &r, nil
}

func withoutChunk(headers []kgo.RecordHeader) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, 0, len(headers)-1)
	for _, h := range headers {
		if h.Key != HeaderChunk {
			out = append(out, h)
		}
	}
	return out
}
