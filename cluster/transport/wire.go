package transport

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/raft"
)

const (
	// version is the newest form of the frames that this build speaks, oldest the oldest. Two nodes speak the newest that both
	// do, so that the nodes of a cluster can be upgraded one after the other: a build that speaks a new one goes on with those
	// of its predecessors for a release.
	version, oldest = 5, 3
	// versionAddress is the first in which a hello says where its node is reached, and a welcome which process it is of.
	versionAddress = 4
	// versionStarts is the first in which both say which start of their node they are.
	versionStarts = 5

	headerBytes = 16
	maxName     = 255

	// chunkBytes is about how much is written at once, and how large a request is unless one entry is larger.
	chunkBytes = 1 << 20
	// maxRequest bounds the entries of a request: the largest frame of a journal.
	maxRequest = 16 << 20
	// maxConfiguration bounds the members' list in a snapshot request.
	maxConfiguration = 1 << 20
	// maxPulses is how many heartbeats go in one frame.
	maxPulses = 1024
	// maxErrorText bounds the text of a refusal.
	maxErrorText = 1 << 10
)

// frameKind says what a frame's body is. Zero is none, so that zeroes are no frame.
type frameKind uint8

const (
	kindHello    frameKind = 1 + iota // lane u8 · version u16 · instance u64 · cluster · node · from version 4 on address, each with its length u8 before it · from version 5 on start u64
	kindWelcome                       // version u16 · node · from version 4 on instance u64 · from version 5 on start u64
	kindRefusal                       // text; flagDoubled, flagForeign, flagSetBack
	kindPulses                        // of a request each: sequence u64 · member 16 · term u64 · instance u64
	kindAppend                        // member 16 · term u64 · previous index u64 · its term u64 · commit u64 · length of the frames u32 · frames
	kindMore                          // more frames of an append
	kindVote                          // member 16 · term u64 · last index u64 · its term u64; flagTransfer
	kindPreVote                       // the same
	kindTimeout                       // member 16
	kindSnapshot                      // member 16 · term u64 · last index u64 · its term u64 · configuration's index u64 · size u64 · version u32 · configuration
	kindData                          // bytes of a snapshot; none: it has no more
	kindAnswer                        // status u8 · zero u24 · term u64 · last log u64 · instance u64 · text
	kindBeats                         // answers to pulses: sequence u64 · status u8 · flags u8 · zero u16 · term u64 · last log u64 · instance u64
	kindTaken                         // length u32 of the snapshot's bytes that were read
	kindCall                          // kind u8 · zero u24 · time left in ms u32 · body
	kindReply                         // status u8 · zero u24 · body
	kindStanding                      // member 16: what has the member there? The reply's body: flags u8 (1 leads, 2 in doubt) · instance u64 · term u64 · last index u64 · its term u64 · the member's name with its length u8 before it
)

// Flags of frames. On answers they say what raft's response does.
const (
	flagTransfer  = 1 << iota // the vote is asked for by a leader's wish
	flagSuccess               // the answer is yes
	flagNoBackoff             // no need to wait before the next try
)

// Flags of refusals, which builds before version 4 don't give.
const (
	flagDoubled = 1 << iota // another process is connected as this node
	flagForeign             // it belongs to another cluster
	flagSetBack             // its folder is older than what its node was
)

// status is how a request ended.
type status uint8

const (
	statusOK      status = 1 + iota
	statusFailed         // raft refused it, with a text
	statusBusy           // there was no room for it
	statusNoGroup        // the group is not open here
	statusOther          // another instance of the group than the request is for
)

func (s status) String() string {
	switch s {
	case statusOK:
		return "ok"
	case statusFailed:
		return "failed"
	case statusBusy:
		return "peer has no room for the request"
	case statusNoGroup:
		return "peer has not opened the group"
	case statusOther:
		return "peer has opened the group anew"
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// GroupID names a group in all nodes of the cluster.
type GroupID [16]byte

// memberAddress names one member of a group, on the wire.
type memberAddress [16]byte

// address is that of a group's member. A node may have one copy after the other, which are different members: what one of
// them is sent is never answered, or acknowledged, by another one.
func (g GroupID) address(member raft.ServerID) memberAddress {
	var room [64]byte // most are shorter, and need no memory of the heap
	sum := sha256.Sum256(append(append(room[:0], g[:]...), member...))
	return memberAddress(sum[:16])
}

const (
	helloBytes    = 1 + 2 + 8
	pulseBytes    = 8 + 16 + 8 + 8
	beatBytes     = 8 + 4 + 8 + 8 + 8
	appendBytes   = 16 + 4*8 + 4
	voteBytes     = 16 + 3*8
	snapshotBytes = 16 + 5*8 + 4
	answerBytes   = 4 + 3*8
)

// header is the fixed part of a frame.
type header struct {
	length uint32
	kind   frameKind
	flags  uint8
	seq    uint64
}

func (h header) put(b []byte) {
	binary.LittleEndian.PutUint32(b, h.length)
	b[4], b[5], b[6], b[7] = byte(h.kind), h.flags, 0, 0
	binary.LittleEndian.PutUint64(b[8:], h.seq)
}

// parseHeader reads a header and checks that the length is one that the kind can have.
func parseHeader(b []byte) (header, error) {
	_ = b[headerBytes-1]
	h := header{
		length: binary.LittleEndian.Uint32(b), kind: frameKind(b[4]), flags: b[5],
		seq: binary.LittleEndian.Uint64(b[8:]),
	}
	low, high := h.kind.lengths()
	if b[6] != 0 || b[7] != 0 || h.length < low || h.length > high {
		return h, fmt.Errorf("%w: frame of kind %d with %d bytes", errProtocol, h.kind, h.length)
	}
	return h, nil
}

// lengths are the least and the greatest length of a kind's body.
func (k frameKind) lengths() (low, high uint32) {
	switch k {
	case kindHello:
		return helloBytes + 2, helloBytes + 3*(1+maxName) + 8
	case kindWelcome:
		return 2 + 1, 2 + 1 + maxName + 8
	case kindRefusal:
		return 0, maxErrorText
	case kindPulses:
		return 0, maxPulses * pulseBytes
	case kindAppend:
		return appendBytes, appendBytes + chunkBytes
	case kindMore:
		return 1, chunkBytes
	case kindData:
		return 0, chunkBytes
	case kindVote, kindPreVote:
		return voteBytes, voteBytes
	case kindTimeout, kindStanding:
		return 16, 16
	case kindSnapshot:
		return snapshotBytes, snapshotBytes + maxConfiguration
	case kindAnswer:
		return answerBytes, answerBytes + maxErrorText
	case kindBeats:
		return 0, maxPulses * beatBytes
	case kindTaken:
		return 4, 4
	case kindCall:
		return callHead, callHead + maxCall
	case kindReply:
		return 4, 4 + maxCall
	}
	return 1, 0
}

// reader takes values off the front of a body whose length was checked.
type bodyReader struct{ b []byte }

func (r *bodyReader) u32() uint32 {
	v := binary.LittleEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

func (r *bodyReader) u64() uint64 {
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *bodyReader) member() (m memberAddress) {
	copy(m[:], r.b)
	r.b = r.b[16:]
	return m
}

// name reads a text with its length before it; ok is false if it runs over the end.
func (r *bodyReader) name() (s string, ok bool) {
	if len(r.b) == 0 || len(r.b) < 1+int(r.b[0]) {
		return "", false
	}
	n := int(r.b[0])
	s, r.b = string(r.b[1:1+n]), r.b[1+n:]
	return s, true
}

func putU16(b []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(b, v) }
func putU32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func putU64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
func putName(b []byte, s string) []byte {
	return append(append(b, byte(len(s))), s...)
}

// answer is what a request came to.
type answer struct {
	status   status
	flags    uint8
	term     uint64
	lastLog  uint64
	instance uint64 // of the group that answered
	text     string // why it failed
	body     []byte // of the reply to a call
}

// frame is the answer as a frame of its own.
func (a answer) frame(seq uint64) []byte {
	text := a.text[:min(len(a.text), maxErrorText)]
	b := make([]byte, headerBytes, headerBytes+answerBytes+len(text))
	b = append(b, byte(a.status), 0, 0, 0)
	b = append(putU64(putU64(putU64(b, a.term), a.lastLog), a.instance), text...)
	header{length: uint32(len(b) - headerBytes), kind: kindAnswer, flags: a.flags, seq: seq}.put(b)
	return b
}

func parseAnswer(h header, body []byte) answer {
	a := answer{status: status(body[0]), flags: h.flags}
	r := bodyReader{body[4:]}
	a.term, a.lastLog, a.instance, a.text = r.u64(), r.u64(), r.u64(), string(r.b)
	return a
}

// appendBeat adds the answer to a pulse.
func (a answer) appendBeat(b []byte, seq uint64) []byte {
	b = append(putU64(b, seq), byte(a.status), a.flags, 0, 0)
	return putU64(putU64(putU64(b, a.term), a.lastLog), a.instance)
}

func parseBeat(r *bodyReader) (seq uint64, a answer) {
	seq = r.u64()
	a.status, a.flags = status(r.b[0]), r.b[1]
	r.b = r.b[4:]
	a.term, a.lastLog, a.instance = r.u64(), r.u64(), r.u64()
	return seq, a
}
