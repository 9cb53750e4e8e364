package kafka

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerWriter writes a connection's answers. It belongs to the connection's
// writer goroutine.
//
// Answers that are ready together leave together: end only adds to what flush
// writes. Whoever is about to wait for anything flushes first.
type answerWriter struct {
	conn     *conn
	buf      []byte // answers to be written, then the one that begin started; reused
	start    int    // of that one
	deadline time.Time
	produced kmsg.ProduceResponse // the one being encoded
	serves   bool                 // one of them is more than an introduction
}

const (
	// keepAnswer is the largest buffer that is kept for the next answer.
	keepAnswer = 64 << 10
	// enoughAnswers is how much may gather before it is written.
	enoughAnswers = 32 << 10
)

// message writes an answer that kmsg encodes.
func (w *answerWriter) message(h header, resp kmsg.Response) error {
	b := w.begin(h)
	b = resp.AppendTo(b)
	return w.end(b, nil)
}

// begin starts an answer: four bytes for its length, and its header. The header
// of ApiVersions is always version 0, as its reader may know no other. What it
// returns holds the answers that were not written yet, too.
func (w *answerWriter) begin(h header) []byte {
	w.start = len(w.buf)
	w.serves = w.serves || !introduces(h.key)
	b := append(w.buf, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(h.correlation))
	if apis[h.key].flexible(h.version) && h.key != int16(kmsg.ApiVersions) {
		b = append(b, 0)
	}
	return b
}

// bare writes an answer that has a length but no header.
func (w *answerWriter) bare(answer []byte) error {
	w.start = len(w.buf)
	return w.end(append(append(w.buf, 0, 0, 0, 0), answer...), nil)
}

// end ends an answer that begin started. pieces, if any, are the buffers that
// make up all that is to be written, of which b is the first, and are written at
// once; else b is all of it, and waits for flush.
func (w *answerWriter) end(b []byte, pieces net.Buffers) error {
	size := len(b) - w.start
	if pieces != nil {
		size = -w.start
		for _, p := range pieces {
			size += len(p)
		}
	}
	binary.BigEndian.PutUint32(b[w.start:], uint32(size-4))
	w.conn.server.counts.bytesOut.Add(uint64(size))
	w.buf = b
	if pieces != nil {
		return w.write(pieces)
	}
	if len(b) >= enoughAnswers {
		return w.flush()
	}
	return nil
}

// flush writes the answers that wait.
func (w *answerWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	return w.write(nil)
}

// write writes pieces, or what is in buf, and empties that.
func (w *answerWriter) write(pieces net.Buffers) error {
	if err := w.extend(); err != nil {
		return err
	}
	var err error
	if pieces == nil {
		_, err = w.conn.net.Write(w.buf)
	} else {
		err = w.conn.server.writePieces(w.conn.net, pieces)
	}
	w.conn.answered.Store(true)
	if w.serves && !w.conn.served.Swap(true) {
		endInOrder(w.conn.net)
	}
	if cap(w.buf) > keepAnswer {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return err
}

// extend sets the time by which a client must have taken its answer. Setting it is not free, so one that was
// set lately is left: it ends between three quarters of the timeout and all of it from now.
func (w *answerWriter) extend() error {
	now, timeout := time.Now(), w.conn.server.opts.StallTimeout
	if w.deadline.Sub(now) > timeout/4*3 {
		return nil
	}
	w.deadline = now.Add(timeout)
	return w.conn.net.SetWriteDeadline(w.deadline)
}
