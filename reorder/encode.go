package reorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The encoding of a checkpoint:
//
//	1 byte   version, now 1
//	1 byte   bit 0 order=source, bit 1 implausible=side, bit 2 bypass
//	varints  future, past (µs)
//	         clock as a zigzag number; watermark, Max and cut as times (see below)
//	         number of partitions, then for each, by name:
//	           name, Read (zigzag), Read-Low, Low-Seek, SeekStamp (time)
//	         number of sources, then for each, by partition and name:
//	           partition number - that of the source before, name,
//	           0 idle, 1 live, 2 live because assigned, Max (time), LastStamp (time)
//	4 bytes  CRC-32C of all before, little endian
//
// A name is the length it shares with the name before, the length of the rest, and
// the rest. A time is 0 for MinTime, 1 for MaxTime, else 2 and the zigzag distance
// from the clock.
const checkpointVersion = 1

const (
	bitOrderSource = 1 << iota
	bitImplausibleSide
	bitBypass
)

// maxName bounds a decoded name, so that damaged input cannot ask for much memory.
const maxName = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCheckpoint is wrapped by every error of UnmarshalBinary.
var ErrCheckpoint = errors.New("reorderer checkpoint is damaged or from a newer version")

// MarshalBinary returns a compact encoding: about 20 bytes a partition and 10 bytes
// and the differing part of the name a source. Equal checkpoints have equal
// encodings. The error is always nil.
func (cp Checkpoint) MarshalBinary() ([]byte, error) {
	e := encoder{buf: []byte{checkpointVersion, cp.bits()}, clock: cp.Clock}
	e.uint(uint64(cp.rules.future))
	e.uint(uint64(cp.rules.past))
	e.int(cp.Clock)
	e.time(cp.Watermark)
	e.time(cp.Max)
	e.time(cp.cut)
	e.uint(uint64(len(cp.Partitions)))
	number := map[string]int{}
	for i, p := range cp.Partitions {
		number[p.Name] = i
		e.name(p.Name)
		e.int(p.Read)
		e.uint(uint64(p.Read - p.Low))
		e.uint(uint64(p.Low - p.Seek))
		e.time(p.SeekStamp)
	}
	e.uint(uint64(len(cp.Sources)))
	e.last = ""
	prev := 0
	for _, s := range cp.Sources {
		n := number[s.Partition]
		e.uint(uint64(n - prev))
		prev = n
		e.name(s.Source)
		e.uint(s.liveCode())
		e.time(s.Max)
		e.time(s.LastStamp)
	}
	return binary.LittleEndian.AppendUint32(e.buf, crc32.Checksum(e.buf, castagnoli)), nil
}

func (cp Checkpoint) bits() byte {
	var bits byte
	if cp.rules.order == OrderSource {
		bits |= bitOrderSource
	}
	if cp.rules.implausible == Side {
		bits |= bitImplausibleSide
	}
	if cp.bypass {
		bits |= bitBypass
	}
	return bits
}

func (s SourceState) liveCode() uint64 {
	switch {
	case s.Assigned:
		return 2
	case s.Live:
		return 1
	}
	return 0
}

func (d *decoder) liveCode() (live, assigned bool) {
	code := d.uint()
	d.bad = d.bad || code > 2
	return code > 0, code == 2
}

type encoder struct {
	buf   []byte
	clock int64
	last  string
}

func (e *encoder) uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }
func (e *encoder) int(v int64)   { e.buf = binary.AppendVarint(e.buf, v) }

func (e *encoder) time(v int64) {
	switch v {
	case MinTime:
		e.uint(0)
	case MaxTime:
		e.uint(1)
	default:
		d := v - e.clock // may wrap; the decoder wraps back
		e.uint(2)
		e.int(d)
	}
}

func (e *encoder) name(s string) {
	shared := 0
	for shared < len(s) && shared < len(e.last) && s[shared] == e.last[shared] {
		shared++
	}
	e.uint(uint64(shared))
	e.uint(uint64(len(s) - shared))
	e.buf = append(e.buf, s[shared:]...)
	e.last = s
}

// UnmarshalBinary reads what MarshalBinary wrote. It accepts nothing else.
func (cp *Checkpoint) UnmarshalBinary(data []byte) error {
	if len(data) < 6 {
		return fmt.Errorf("%w: %d bytes are too short", ErrCheckpoint, len(data))
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if body[0] != checkpointVersion {
		return fmt.Errorf("%w: version %d, this program reads version %d", ErrCheckpoint, body[0], checkpointVersion)
	}
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return fmt.Errorf("%w: checksum %08x, want %08x", ErrCheckpoint, got, sum)
	}
	d := decoder{rest: body[2:]}
	out := d.checkpoint(body[1])
	if d.bad || len(d.rest) > 0 {
		return fmt.Errorf("%w: impossible content", ErrCheckpoint)
	}
	*cp = out
	return nil
}

// A decoder sets bad at the first impossible value and returns zeros from then on.
type decoder struct {
	rest  []byte
	clock int64
	last  string
	bad   bool
}

func (d *decoder) checkpoint(bits byte) Checkpoint {
	cp := Checkpoint{bypass: bits&bitBypass != 0}
	d.bad = bits >= bitBypass<<1
	cp.rules.implausible = Clamp
	if bits&bitImplausibleSide != 0 {
		cp.rules.implausible = Side
	}
	if bits&bitOrderSource != 0 {
		cp.rules.order = OrderSource
	}
	cp.rules.future, cp.rules.past = d.natural(), d.natural()
	cp.Clock = d.int()
	d.clock = cp.Clock
	cp.Watermark, cp.Max, cp.cut = d.time(), d.time(), d.time()
	for n := d.count(5); n > 0; n-- {
		p := PartitionState{Name: d.name(), Read: d.int()}
		p.Low = p.Read - d.natural()
		p.Seek = p.Low - d.natural()
		p.SeekStamp = d.time()
		d.bad = d.bad || p.Seek > p.Low || p.Low > p.Read
		cp.Partitions = append(cp.Partitions, p)
	}
	d.last = ""
	at := int64(0)
	for n := d.count(5); n > 0; n-- {
		if at += d.natural(); at < 0 || at >= int64(len(cp.Partitions)) {
			d.bad = true
			break
		}
		s := SourceState{Partition: cp.Partitions[at].Name, Source: d.name()}
		s.Live, s.Assigned = d.liveCode()
		s.Max, s.LastStamp = d.time(), d.time()
		cp.Sources = append(cp.Sources, s)
	}
	return cp
}

// count reads the length of a list whose elements take at least size bytes.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.rest)/size) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) natural() int64 {
	v := d.uint()
	if int64(v) < 0 {
		d.bad = true
		return 0
	}
	return int64(v)
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) time() int64 {
	switch d.uint() {
	case 0:
		return MinTime
	case 1:
		return MaxTime
	case 2:
		return d.clock + d.int()
	}
	d.bad = true
	return 0
}

func (d *decoder) name() string {
	shared, own := d.uint(), d.uint()
	if d.bad || shared > uint64(len(d.last)) || own > uint64(len(d.rest)) || shared+own > maxName {
		d.bad = true
		return ""
	}
	d.last = d.last[:shared] + string(d.rest[:own])
	d.rest = d.rest[own:]
	return d.last
}
