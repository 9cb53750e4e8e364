package mirror

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// Description is what streams there are, for the caller to decode.
type Description struct {
	// Applied rises with every change: what has a lower one is older.
	Applied uint64
	// Sum is that of what counts in Body: two with the same one say the same.
	Sum  [32]byte
	Body []byte
}

// Source is what observers are served from. Its methods are safe for concurrent use.
type Source interface {
	// Describe returns a description that is not older than floor and has another sum than known, waiting for it until ctx
	// ends, which is an error.
	Describe(ctx context.Context, floor uint64, known [32]byte) (Description, error)
	// Ends tells of all journals that are here.
	Ends() []End
	// Journal returns one of them.
	Journal(Key) (*storage.Journal, bool)
}

const (
	// silence is after how long without a request an observer is taken for dead: it asks for ends all the time. Its
	// connection may also take so long for what is written to it.
	silence = time.Minute
	// describeWithin is how long a description is waited for.
	describeWithin = 30 * time.Second
	// atOnce bounds the requests of a connection that are not yet answered.
	atOnce = 1 << 14
)

// server answers one observer.
type server struct {
	conn net.Conn
	src  Source
	turn chan struct{} // holds a token while somebody writes
	told map[Key]End   // what ends has told; used by one request at a time, which endsMu holds

	endsMu sync.Mutex

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // of requests that are not yet answered; guarded by mu
}

// Serve answers an observer until the connection or ctx ends. It returns why, nil if the observer left.
func Serve(ctx context.Context, conn net.Conn, r *bufio.Reader, src Source) error {
	s := &server{conn: conn, src: src, turn: make(chan struct{}, 1), told: map[Key]End{}, cancels: map[uint64]context.CancelFunc{}}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	var answering sync.WaitGroup
	defer func() {
		cancel()
		stop()
		_ = conn.Close() // who still writes is not heard any more
		answering.Wait()
	}()
	for {
		err := conn.SetReadDeadline(time.Now().Add(silence))
		if err == nil {
			err = s.take(ctx, r, &answering)
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take reads a request and has it answered.
func (s *server) take(ctx context.Context, r *bufio.Reader, answering *sync.WaitGroup) error {
	h, err := readHeader(r, maxRequest)
	if err != nil {
		return err
	}
	body := make([]byte, h.length)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	want := map[kind]int{kindDescribe: 40, kindPull: pullBytes, kindStretch: pullBytes}
	if len(body) != want[h.kind] {
		return fmt.Errorf("%w: request of kind %d with %d bytes", errProtocol, h.kind, len(body))
	}
	if h.kind == kindCancel {
		s.cancel(h.seq)
		return nil
	}
	ctx, err = s.begin(ctx, h.seq)
	if err != nil {
		return err
	}
	answering.Go(func() {
		defer s.cancel(h.seq)
		if err := s.answer(ctx, h, body); err != nil {
			_ = s.conn.Close() // its reader ends the rest
		}
	})
	return nil
}

func (s *server) begin(ctx context.Context, seq uint64) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.cancels[seq]; ok || len(s.cancels) >= atOnce {
		return nil, fmt.Errorf("%w: request %d while %d are not answered", errProtocol, seq, len(s.cancels))
	}
	ctx, cancel := context.WithCancel(ctx)
	s.cancels[seq] = cancel
	return ctx, nil
}

// cancel ends a request, answered or not.
func (s *server) cancel(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.cancels[seq]; ok {
		cancel()
		delete(s.cancels, seq)
	}
}

// answer answers a request, unless ctx ends before. An error is one of the connection.
func (s *server) answer(ctx context.Context, h header, body []byte) error {
	switch h.kind {
	case kindDescribe:
		return s.describe(ctx, h, binary.LittleEndian.Uint64(body), [32]byte(body[8:]))
	case kindEnds:
		s.endsMu.Lock()
		defer s.endsMu.Unlock()
		return s.reply(ctx, h, OK, s.changedEnds())
	case kindStretch:
		return s.stretch(ctx, h, parsePull(body))
	default:
		return s.pull(ctx, h, parsePull(body))
	}
}

func (s *server) describe(ctx context.Context, h header, floor uint64, known [32]byte) error {
	wait, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	d, err := s.src.Describe(wait, floor, known)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return s.reply(ctx, h, Same, nil)
	case err != nil:
		return s.fail(ctx, h, err)
	case len(d.Body) > maxAnswer-40:
		return s.fail(ctx, h, fmt.Errorf("the description of the streams has %d bytes, at most %d can be sent", len(d.Body), maxAnswer-40))
	}
	b := append(binary.LittleEndian.AppendUint64(nil, d.Applied), d.Sum[:]...)
	return s.reply(ctx, h, OK, append(b, d.Body...))
}

// changedEnds are the ends that are not what was told last.
func (s *server) changedEnds() (b []byte) {
	now := map[Key]End{}
	for _, e := range s.src.Ends() {
		now[e.Key] = e
		if s.told[e.Key] != e {
			b = e.append(b)
		}
	}
	for k := range maps.Keys(s.told) {
		if _, ok := now[k]; !ok {
			b = (&End{Key: k, Gone: true}).append(b)
		}
	}
	s.told = now
	return b
}

// pull waits until there is something behind the place, and sends it.
func (s *server) pull(ctx context.Context, h header, p pullRequest) error {
	j, ok := s.src.Journal(p.Key)
	if !ok {
		return s.reply(ctx, h, Absent, nil)
	}
	if j.Visible().Index <= p.after {
		changed := make(chan struct{}, 1)
		stop := j.NotifyEnd(changed)
		defer stop()
		for j.Visible().Index <= p.after {
			select {
			case <-changed:
			case <-j.Failed():
				return s.reply(ctx, h, Absent, nil)
			case <-ctx.Done():
				return nil
			}
		}
	}
	return s.sendFrames(ctx, h, j, p)
}

// stretch sends bytes of a journal; who gets them checks them.
func (s *server) stretch(ctx context.Context, h header, p pullRequest) error {
	j, ok := s.src.Journal(p.Key)
	if !ok {
		return s.reply(ctx, h, Absent, nil)
	}
	if p.most > maxStretch {
		return fmt.Errorf("%w: a stretch of %d bytes", errProtocol, p.most)
	}
	if !s.enter(ctx) { // one at a time: each takes memory
		return nil
	}
	buf := make([]byte, p.most)
	committed, err := j.Stretch(p.after, buf)
	if err == nil && committed {
		defer s.leave()
		return s.write(h, OK, [][]byte{buf})
	}
	s.leave()
	if err == nil {
		err = errors.New("not all of it is known to be committed")
	}
	return s.fail(ctx, h, err)
}

// sendFrames sends what there is when the connection can take it.
func (s *server) sendFrames(ctx context.Context, h header, j *storage.Journal, p pullRequest) error {
	if !s.enter(ctx) {
		return nil
	}
	f, err := j.FramesAfter(p.after, p.most)
	if err == nil && f != nil {
		defer s.leave()
		defer f.Release()
		return s.write(h, OK, f.Pieces)
	}
	s.leave()
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return s.reply(ctx, h, Trimmed, j.Front().State)
	case err == nil: // the log was shorter when it was read: it was begun anew
		return s.reply(ctx, h, Absent, nil)
	}
	return s.fail(ctx, h, err)
}

// enter waits for the turn to write; false if ctx ends before.
func (s *server) enter(ctx context.Context) bool {
	select {
	case s.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *server) leave() { <-s.turn }

func (s *server) fail(ctx context.Context, h header, err error) error {
	text := err.Error()
	return s.reply(ctx, h, Failed, []byte(text[:min(len(text), maxText)]))
}

func (s *server) reply(ctx context.Context, h header, st Status, body []byte) error {
	if !s.enter(ctx) {
		return nil
	}
	defer s.leave()
	return s.write(h, st, [][]byte{body})
}

// write writes an answer. Over TCP the kernel takes the pieces from where they lie; elsewhere it is we who touch the
// journal's pages.
func (s *server) write(h header, st Status, pieces [][]byte) error {
	a := header{kind: h.kind, status: st, seq: h.seq}
	for _, p := range pieces {
		a.length += uint32(len(p))
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	bufs := append(net.Buffers{a.append(nil)}, pieces...)
	if _, ok := s.conn.(*net.TCPConn); ok {
		_, err := bufs.WriteTo(s.conn)
		return err
	}
	var whole bytes.Buffer
	whole.Grow(headerBytes + int(a.length))
	err := storage.Guard(func() error {
		for _, b := range bufs {
			whole.Write(b)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = s.conn.Write(whole.Bytes())
	return err
}
