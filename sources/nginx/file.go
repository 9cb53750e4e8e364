package nginx

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

// file is one file of a log that is being read, or was read to its end. It belongs
// to the goroutine of Run.
type file struct {
	path    string // last known
	key     fileKey
	content content // nil before it is opened, and when done

	// unsure says that the file may be a copy of another: nothing of it is emitted
	// before that is known. See judge.
	unsure bool
	late   bool // of an unsure file: the log was there already when it appeared

	id         string // empty until the first line is whole
	generation int
	offset     int64  // all before it was emitted
	peeked     []byte // the first bytes of a file of which nothing was emitted
	head       []byte // the first bytes of what was emitted
	tail       []byte // the last bytes of what was emitted
	piece      int
	unended    bool

	done      bool // read to its end; it is looked at again if it grows
	ended     bool // with Once: all that was there at the start was emitted
	limit     int64
	rotatedAt time.Time // when it was first not the newest of its log; zero before
	grownAt   time.Time // when it last had something new
	looked    int64     // size at which there was no whole line; -1 if not known
	lookedAt  time.Time // when the file of that size had been written
	size      int64     // when it was last asked for
	time      int64     // of the last record that had one
	checked   status    // as a done file looked when its contents were last compared
	gone      time.Time // when it was first not in its folder; zero while it is
	damaged   error     // why it can't be read on
	truncated bool      // what it held can only be in a copy
	// frozen is the state of a finished file whose contents are gone, so that head and
	// tail are not known as bytes; nil for all others.
	frozen *fileState
}

const noLimit = -1

func newFile(path string, key fileKey, c content, now time.Time) *file {
	return &file{path: path, key: key, content: c, limit: noLimit, looked: -1, grownAt: now}
}

// advance notes that b, which begins at offset, was emitted.
func (f *file) advance(b []byte) {
	if room := headLength - len(f.head); room > 0 && f.offset == int64(len(f.head)) {
		f.head = append(f.head, b[:min(room, len(b))]...)
	}
	f.offset += int64(len(b))
	f.looked = -1
	if len(b) >= tailLength {
		f.tail = append(f.tail[:0], b[len(b)-tailLength:]...)
		return
	}
	f.tail = append(f.tail, b...)
	if extra := len(f.tail) - tailLength; extra > 0 {
		f.tail = append(f.tail[:0], f.tail[extra:]...)
	}
}

// name gives the file its id, from its log and its first line: what a new process
// would give it again, though it was renamed, copied or compressed in between. Files
// that begin alike are told apart by their generation; taken returns the highest that
// the log has with this id, -1 for none.
func (f *file) name(base string, firstLine []byte, taken func(id string) int) {
	id := idOf(base, firstLine)
	f.id, f.generation = id, taken(id)+1
}

func idOf(base string, firstLine []byte) string {
	h := xxhash.New()
	_, _ = h.WriteString(base)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(firstLine[:min(len(firstLine), headLength)])
	return hex.EncodeToString(h.Sum(nil))
}

// position names the record that begins at the offset, uniquely over all files and
// their truncations.
func (f *file) position() string {
	b := append(make([]byte, 0, 48), f.id...)
	b = strconv.AppendInt(append(b, '.'), int64(f.generation), 10)
	return string(strconv.AppendInt(append(b, '.'), f.offset, 10))
}

func (f *file) state() fileState {
	if f.frozen != nil {
		return *f.frozen
	}
	st := fileState{
		ID: f.id, Generation: f.generation, Key: f.key, Offset: f.offset, Done: f.done,
		Head: fingerprintOf(f.head), Tail: fingerprintOf(f.tail), Unended: f.unended, Piece: f.piece,
		Late: f.unsure && f.late,
	}
	if f.offset == 0 {
		st.Head, st.Plain = fingerprintOf(f.peeked), !isCompressed(f.path)
	}
	return st
}

// peek looks at the beginning of a file of which nothing was emitted, so that a later
// run knows it by its contents, too.
func (f *file) peek() {
	if f.offset == 0 && f.content != nil && len(f.peeked) < headLength {
		f.peeked, _ = readFull(f.content, 0, headLength) // what can't be read says step
	}
}

// restore takes over what a state says of the file, if its content is that. It looks
// at the very bytes that it takes over: the file may be truncated at any moment.
func (f *file) restore(s fileState) (same bool, err error) {
	if s.Offset < int64(s.Tail.Length) {
		return false, nil
	}
	head, err := readFull(f.content, 0, s.Head.Length)
	if err != nil || fingerprintOf(head) != s.Head {
		return false, err
	}
	tail, err := readFull(f.content, s.Offset-int64(s.Tail.Length), s.Tail.Length)
	if err != nil || fingerprintOf(tail) != s.Tail {
		return false, err
	}
	f.id, f.generation, f.offset, f.unended, f.piece = s.ID, s.Generation, s.Offset, s.Unended, s.Piece
	if f.head, f.tail = head, tail; s.Offset == 0 {
		f.peeked, f.head = head, nil
	}
	return true, nil
}

// holds reports whether the content is what the state says, up to its offset.
func (s fileState) holds(c content) (bool, error) {
	ok, err := s.Head.standsAt(c, 0)
	if !ok || err != nil {
		return false, err
	}
	return s.Tail.standsAt(c, s.Offset-int64(s.Tail.Length))
}

// truncate leaves a done file with what was read so far, for finding a copy of it,
// and makes f a new file.
func (f *file) truncate() (former *file) {
	former = &file{
		path: f.path, id: f.id, generation: f.generation, offset: f.offset, head: f.head, tail: f.tail,
		piece: f.piece, unended: f.unended, done: true, limit: noLimit, looked: -1, time: f.time, truncated: true, rotatedAt: f.grownAt,
	}
	f.id, f.generation, f.offset, f.peeked, f.head, f.tail = "", 0, 0, nil, nil, nil
	f.piece, f.unended, f.looked = 0, false, -1
	return former
}

func (f *file) close() {
	if f.content != nil {
		_ = f.content.Close() // it was only read
		f.content = nil
	}
}

// skipToEnd makes reading begin behind the last whole line.
func (f *file) skipToEnd(base string, taken func(id string) int) error {
	st, err := f.content.stat()
	if err != nil {
		return err
	}
	size := f.content.length(st)
	if size < 0 { // compressed, so finished
		f.done = true
		f.close()
		return nil
	}
	end, err := lastLineEnd(f.content, size)
	if err != nil || end == 0 {
		return err
	}
	head, err := readFull(f.content, 0, int(min(end, headLength)))
	if err != nil {
		return err
	}
	n := min(end, tailLength)
	tail, err := readFull(f.content, end-n, int(n))
	if err != nil {
		return err
	}
	if int64(len(tail)) < n || int64(len(head)) < min(end, headLength) {
		return nil // truncated just now: what it holds comes after the start
	}
	f.head, f.tail, f.offset, f.unsure = head, tail, end, false
	first, _, _ := bytes.Cut(f.head, []byte("\n"))
	f.name(base, first, taken)
	return nil
}

// lastLineEnd returns the offset behind the last line break before size; 0 where
// there is none.
func lastLineEnd(c content, size int64) (int64, error) {
	const step = 64 << 10
	for end := size; end > 0; end -= min(end, step) {
		from := end - min(end, step)
		b, err := readFull(c, from, int(end-from))
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
	}
	return 0, nil
}
