package mirror_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/mirror"
	"github.com/daybook-data/daybook/storage"
)

// shelf is a Source with one journal.
type shelf struct{ j *storage.Journal }

var key = mirror.Key{Stream: [16]byte{7}, Journal: 3}

func (s shelf) Describe(ctx context.Context, floor uint64, known [32]byte) (mirror.Description, error) {
	if known == [32]byte{1} {
		<-ctx.Done()
		return mirror.Description{}, ctx.Err()
	}
	return mirror.Description{Applied: floor + 1, Sum: [32]byte{1}, Body: []byte("streams")}, nil
}

func (s shelf) Ends() []mirror.End {
	return []mirror.End{{Key: key, Position: s.j.Visible().Position, Records: 5, KnownPosition: 77, KnownRecords: 6, Lag: time.Second, Leads: true}}
}

func (s shelf) Journal(k mirror.Key) (*storage.Journal, bool) { return s.j, k == key }

// open returns a journal of commands to copy, and both ends of a connection to who serves it.
func open(t *testing.T) (*storage.Journal, net.Conn) {
	t.Helper()
	j, err := storage.Open(t.TempDir(), storage.Options{})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = mirror.Serve(context.Background(), conn, bufio.NewReader(conn), shelf{j})
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	t.Cleanup(func() {
		_, _ = conn.Close(), l.Close()
		<-served
		_ = j.Close()
	})
	return j, conn
}

func client(t *testing.T, conn net.Conn, memory int64) *mirror.Client {
	t.Helper()
	c := mirror.NewClient(conn, bufio.NewReader(conn), mirror.NewMemory(memory), 30*time.Second)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Run(context.Background())
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put stores entries of raft's own kind and commits them.
func put(t *testing.T, j *storage.Journal, n int) {
	t.Helper()
	for range n {
		must(t, j.StoreLog(&raft.Log{Index: j.End().Index + 1, Term: 1, Type: raft.LogNoop}))
	}
	j.Commit(j.End().Index)
}

func answer(t *testing.T, p *mirror.Pending) mirror.Answer {
	t.Helper()
	select {
	case a := <-p.Done():
		return a
	case <-time.After(30 * time.Second):
		t.Fatal("no answer")
		panic("unreachable")
	}
}

// A pull waits for what is not there yet, is answered once, and holds nobody up; one that is cancelled is not answered.
func TestPullsWaitForWhatComes(t *testing.T) {
	t.Parallel()
	j, conn := open(t)
	c := client(t, conn, 1<<20)
	put(t, j, 2)
	first, waits, cancelled := c.Pull(key, 0, 1<<20), c.Pull(key, 2, 1<<20), c.Pull(key, 3, 1<<20)
	cancelled.Cancel()
	a := answer(t, first)
	if a.Status != mirror.OK || storage.LastOf(a.Body) != 2 {
		t.Errorf("got %v up to entry %d, %v", a.Status, storage.LastOf(a.Body), a.Err)
	}
	a.Release()
	if a := answer(t, c.Pull(mirror.Key{}, 0, 1)); a.Status != mirror.Absent {
		t.Errorf("a journal that is not there: %v, %v", a.Status, a.Err)
	}
	ends, err := c.Ends(t.Context())
	if want := (shelf{j}).Ends()[0]; err != nil || len(ends) != 1 || ends[0] != want {
		t.Errorf("the ends are %+v (%v), want %+v", ends, err, want)
	}
	if ends, err := c.Ends(t.Context()); err != nil || len(ends) != 0 {
		t.Errorf("what is as before was told again: %+v, %v", ends, err)
	}
	d, ok, err := c.Describe(t.Context(), 4, [32]byte{})
	if err != nil || !ok || d.Applied != 5 || string(d.Body) != "streams" {
		t.Errorf("described as %+v, %v, %v", d, ok, err)
	}
	select {
	case a := <-waits.Done():
		t.Errorf("what waits was answered: %v, %v", a.Status, a.Err)
	default:
	}
	put(t, j, 1)
	a = answer(t, waits)
	if a.Status != mirror.OK || storage.LastOf(a.Body) != 3 {
		t.Errorf("got %v up to entry %d, %v", a.Status, storage.LastOf(a.Body), a.Err)
	}
	a.Release()
	stretch := make([]byte, 64)
	must(t, c.Stretch(t.Context(), key, 64, stretch))
	if at := binary.LittleEndian.Uint64(stretch[32:]); at != 64 {
		t.Errorf("the stretch is of position %d", at)
	}
	must(t, j.Close())
	if a := answer(t, c.Pull(key, 3, 1)); a.Status == mirror.OK {
		t.Error("a closed journal gives frames")
	}
}

// What was received and not released is bounded, and nothing is lost for it.
func TestWhatIsReceivedIsBounded(t *testing.T) {
	t.Parallel()
	j, conn := open(t)
	c := client(t, conn, 100) // one answer of 64 bytes
	put(t, j, 8)
	var all []*mirror.Pending
	for i := range uint64(8) {
		all = append(all, c.Pull(key, i, 1))
	}
	seen := map[uint64]bool{}
	for range all {
		found := false
		for deadline := time.Now().Add(30 * time.Second); !found && time.Now().Before(deadline); {
			n := 0
			for _, p := range all {
				n += len(p.Done())
			}
			if n > 1 {
				t.Fatalf("%d answers are held", n)
			}
			for _, p := range all {
				select {
				case a := <-p.Done():
					seen[storage.LastOf(a.Body)], found = true, true
					a.Release()
				default:
				}
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("got the entries %v", seen)
	}
}

// Who breaks the protocol loses the connection, and nobody else.
func TestWhoBreaksTheProtocolIsCutOff(t *testing.T) {
	t.Parallel()
	header := func(length uint32, kind byte) []byte {
		b := binary.LittleEndian.AppendUint32(nil, length)
		return append(b, kind, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	}
	for name, sent := range map[string][]byte{
		"no kind":        header(0, 0),
		"unknown kind":   header(0, 99),
		"too long":       header(1<<30, 3),
		"of wrong size":  append(header(5, 3), 1, 2, 3, 4, 5),
		"number twice":   append(append(header(32, 3), append(append([]byte{7}, make([]byte, 15)...), 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0)...), header(0, 2)...),
		"a huge stretch": append(header(32, 5), append(append([]byte{7}, make([]byte, 15)...), 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255)...),
	} {
		_, conn := open(t)
		_, err := conn.Write(sent)
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
		if n, err := io.Copy(io.Discard, conn); err != nil && !isReset(err) || n > 0 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

func isReset(err error) bool {
	operr, ok := err.(*net.OpError)
	return ok && !operr.Timeout()
}
