package transport_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// counted counts what is read of a snapshot.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func snapshotOf(size int) *raft.InstallSnapshotRequest {
	return &raft.InstallSnapshotRequest{
		SnapshotVersion: 1, Term: 3, LastLogIndex: 10, LastLogTerm: 2, ConfigurationIndex: 4, Size: int64(size),
		Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}),
	}
}

// A snapshot arrives whole, no faster than it is read.
func TestASnapshotIsSentAsFastAsItIsRead(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{Silence: time.Minute}) // however slow the machine is
	ga, gb := openGroup(t, a), openGroup(t, b)
	data := make([]byte, 10<<20+3)
	fill := rand.NewChaCha8([32]byte{1})
	_, _ = fill.Read(data)
	in := &counted{Reader: bytes.NewReader(data)}
	step := make(chan struct{})
	follow(t, gb, func(rpc raft.RPC, _ int) (any, error) {
		r := rpc.Command.(*raft.InstallSnapshotRequest)
		want := snapshotOf(len(data))
		if r.Term != 3 || r.LastLogIndex != 10 || r.LastLogTerm != 2 || r.ConfigurationIndex != 4 || r.Size != int64(len(data)) || r.SnapshotVersion != 1 || !bytes.Equal(r.Configuration, want.Configuration) {
			t.Errorf("got %+v", r)
		}
		<-step
		got, err := io.ReadAll(rpc.Reader)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %d bytes of %d, %v", len(got), len(data), err)
		}
		return yes(rpc)
	})
	done := make(chan error, 1)
	var resp raft.InstallSnapshotResponse
	go func() { done <- ga.InstallSnapshot("b", "b", snapshotOf(len(data)), &resp, in) }()
	until(t, "the window to fill", func() bool { return in.n.Load() >= 2<<20 })
	if ahead := in.n.Load(); ahead > 2<<20+256<<10 {
		t.Errorf("%d bytes were sent that nobody reads", ahead)
	}
	// Meanwhile heartbeats get through.
	until(t, "nothing more to be sent", func() bool { return b.Stats().HeldBytes > 0 })
	close(step)
	must(t, <-done)
	if !resp.Success || resp.Term != 3 || in.n.Load() != int64(len(data)) {
		t.Errorf("got %+v after %d bytes", resp, in.n.Load())
	}
	until(t, "the memory to be given back", func() bool { return b.Stats().HeldBytes == 0 })
}

// A snapshot that cannot be read to its end, is refused, or loses its connection ends on both sides, and the next works.
func TestASnapshotThatFailsEndsOnBothSides(t *testing.T) {
	t.Parallel()
	a, b := newPipes().pair(t, transport.Options{})
	ga, gb := openGroup(t, a), openGroup(t, b)
	refuse := atomic.Bool{}
	began, ended := make(chan struct{}, 8), make(chan error, 8)
	follow(t, gb, func(rpc raft.RPC, _ int) (any, error) {
		if refuse.Load() {
			return nil, errors.New("it is full")
		}
		began <- struct{}{}
		_, err := io.Copy(io.Discard, rpc.Reader)
		ended <- err
		if err != nil {
			return nil, err
		}
		return yes(rpc)
	})
	var resp raft.InstallSnapshotResponse
	send := func(size int, data func() io.Reader) (err error) {
		until(t, "the one before to be over", func() bool {
			err = ga.InstallSnapshot("b", "b", snapshotOf(size), &resp, data())
			return err == nil || !strings.Contains(err.Error(), "no room for the request")
		})
		return err
	}
	whole := func(size int) func() io.Reader {
		return func() io.Reader { return bytes.NewReader(make([]byte, size)) }
	}
	// One that ends before raft has it at all would have nothing to end.
	short := func() io.Reader { return &slowEnd{Reader: strings.NewReader("short"), at: func() { <-began }} }
	if err := send(5000, short); err == nil {
		t.Error("a snapshot without its end was sent")
	}
	if err := <-ended; err == nil {
		t.Error("a snapshot without its end was received")
	}
	refuse.Store(true)
	if err := send(20<<20, whole(20<<20)); err == nil || !strings.Contains(err.Error(), "it is full") {
		t.Errorf("refused: got %v", err)
	}
	refuse.Store(false)
	for _, size := range []int{3 << 20, 0} {
		must(t, send(size, whole(size)))
		must(t, <-ended)
		<-began
	}
	half := func() io.Reader {
		return &slowEnd{Reader: bytes.NewReader(make([]byte, 1<<20)), at: func() {
			<-began
			a.SetPeer("b", "elsewhere")
		}}
	}
	if err := send(4<<20, half); err == nil {
		t.Error("a snapshot was sent over a connection that ended")
	}
	if err := <-ended; err == nil {
		t.Error("a snapshot was received over a connection that ended")
	}
}

// slowEnd calls at when what it has was read, and goes on with nothing.
type slowEnd struct {
	io.Reader
	at func()
}

func (s *slowEnd) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err == io.EOF {
		s.at()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
