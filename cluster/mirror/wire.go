package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	headerBytes = 16
	// maxRequest bounds a request's body, maxAnswer that of an answer: the largest frame and what may come before it, or the
	// state at a journal's front, or a description.
	maxRequest = 256
	maxAnswer  = 64 << 20
	// maxPull bounds what one pull may ask for; one frame may exceed it.
	maxPull = 4 << 20
	// maxText bounds the text of an error.
	maxText = 1 << 10
)

// kind says what a request wants. Zero is none.
type kind uint8

const (
	kindDescribe kind = 1 + iota // floor u64 · what is known 32
	kindEnds                     // nothing
	kindPull                     // stream 16 · journal u32 · after u64 · at most u32
	kindCancel                   // nothing; not answered
	kindStretch                  // stream 16 · journal u32 · position u64 · length u32
)

// Status is how a request ended.
type Status uint8

// The ways to end. The body that goes with each stands behind it.
const (
	OK      Status = 1 + iota // what was asked for
	Absent                    // nothing: the journal is not there
	Trimmed                   // the state at the journal's front: what was asked for is below it
	Failed                    // text
	Same                      // nothing: the description is still what the observer has
)

var errProtocol = errors.New("the other side breaks the protocol")

// Key names a journal.
type Key struct {
	Stream  [16]byte
	Journal int32
}

// End is how far a journal goes at an upstream.
type End struct {
	Key
	// Position and Records are up to where it has it: in bytes, and in records of all partitions together.
	Position uint64
	Records  int64
	// KnownPosition and KnownRecords are up to where it knows that there is something: what it has, or more.
	KnownPosition uint64
	KnownRecords  int64
	// Lag is for how long it has not been sure to have all that there is; 0 if it is.
	Lag time.Duration
	// Leads says that it leads the journal's group; Gone that it does not have it any more, and nothing else counts.
	Leads, Gone bool
}

const (
	flagLeads = 1 << iota
	flagGone
)

const (
	endBytes  = 20 + 5*8 + 4
	pullBytes = 20 + 8 + 4 // of a stretch too
	// maxStretch bounds the bytes of a stretch.
	maxStretch = 1 << 20
)

type header struct {
	length uint32
	kind   kind
	status Status
	seq    uint64
}

func (h header) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.length)
	b = append(b, byte(h.kind), byte(h.status), 0, 0)
	return binary.LittleEndian.AppendUint64(b, h.seq)
}

// readHeader reads a header whose body has at most so many bytes.
func readHeader(r io.Reader, most uint32) (h header, err error) {
	var b [headerBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, err
	}
	h = header{binary.LittleEndian.Uint32(b[:]), kind(b[4]), Status(b[5]), binary.LittleEndian.Uint64(b[8:])}
	if h.length > most || h.kind < kindDescribe || h.kind > kindStretch || b[6] != 0 || b[7] != 0 {
		return h, fmt.Errorf("%w: message of kind %d with %d bytes", errProtocol, h.kind, h.length)
	}
	return h, nil
}

func (k Key) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(b, k.Stream[:]...), uint32(k.Journal))
}

func parseKey(b []byte) Key {
	return Key{[16]byte(b[:16]), int32(binary.LittleEndian.Uint32(b[16:]))}
}

func (e *End) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(le.AppendUint64(e.Key.append(b), e.Position), uint64(e.Records))
	b = le.AppendUint64(le.AppendUint64(b, e.KnownPosition), uint64(e.KnownRecords))
	b = le.AppendUint64(b, uint64(e.Lag))
	flags := byte(0)
	if e.Leads {
		flags |= flagLeads
	}
	if e.Gone {
		flags |= flagGone
	}
	return append(b, flags, 0, 0, 0)
}

func parseEnds(b []byte) ([]End, error) {
	if len(b)%endBytes != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no list of ends", errProtocol, len(b))
	}
	le := binary.LittleEndian
	var all []End
	for ; len(b) > 0; b = b[endBytes:] {
		all = append(all, End{
			Key: parseKey(b), Position: le.Uint64(b[20:]), Records: int64(le.Uint64(b[28:])),
			KnownPosition: le.Uint64(b[36:]), KnownRecords: int64(le.Uint64(b[44:])), Lag: time.Duration(le.Uint64(b[52:])),
			Leads: b[60]&flagLeads != 0, Gone: b[60]&flagGone != 0,
		})
	}
	return all, nil
}

// pullRequest asks for frames.
type pullRequest struct {
	Key
	after uint64
	most  int
}

func (p *pullRequest) append(b []byte) []byte {
	le := binary.LittleEndian
	return le.AppendUint32(le.AppendUint64(p.Key.append(b), p.after), uint32(p.most))
}

func parsePull(b []byte) pullRequest {
	le := binary.LittleEndian
	return pullRequest{parseKey(b), le.Uint64(b[20:]), int(min(le.Uint32(b[28:]), maxPull))}
}
