package kafka

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerWriter writes a connection's answers. It belongs to the connection's
// writer goroutine.
type answerWriter struct {
	conn *conn
	buf  []byte // reused, unless an answer made it large
}

// keepAnswer is the largest buffer that is kept for the next answer.
const keepAnswer = 64 << 10

// message writes an answer that kmsg encodes.
func (w *answerWriter) message(h header, resp kmsg.Response) error {
	b := w.begin(h)
	b = resp.AppendTo(b)
	return w.end(b, nil)
}

// begin starts an answer: four bytes for its length, and its header. The header
// of ApiVersions is always version 0, as its reader may know no other.
func (w *answerWriter) begin(h header) []byte {
	b := append(w.buf[:0], 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(h.correlation))
	if apis[h.key].flexible(h.version) && h.key != int16(kmsg.ApiVersions) {
		b = append(b, 0)
	}
	return b
}

// end writes an answer that begin started. pieces, if any, are the buffers that
// make it up, of which b is the first; else b is all of it.
func (w *answerWriter) end(b []byte, pieces net.Buffers) error {
	size := len(b)
	if pieces != nil {
		size = 0
		for _, p := range pieces {
			size += len(p)
		}
	}
	binary.BigEndian.PutUint32(b, uint32(size-4))
	w.conn.server.counts.bytesOut.Add(uint64(size))
	if err := w.conn.net.SetWriteDeadline(time.Now().Add(w.conn.server.opts.StallTimeout)); err != nil {
		return err
	}
	var err error
	if pieces == nil {
		_, err = w.conn.net.Write(b)
	} else {
		_, err = pieces.WriteTo(w.conn.net)
	}
	w.conn.answered.Store(true)
	if w.buf = b[:0]; cap(b) > keepAnswer {
		w.buf = nil
	}
	return err
}
