package transport_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster/transport"
)

// speaks says hello as a build that speaks that version at most, and returns the kind and body of the answer.
func speaks(t *testing.T, n *pipes, to string, version uint16, more ...byte) (kind byte, body []byte) {
	t.Helper()
	c, err := n.dial(t.Context(), to)
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	h := append(hello(0, "test", "b"), more...)
	binary.LittleEndian.PutUint32(h, uint32(len(h)-16))
	binary.LittleEndian.PutUint16(h[17:], version)
	_, err = c.Write(h)
	must(t, err)
	return answer(t, c)
}

func answer(t *testing.T, c net.Conn) (kind byte, body []byte) {
	t.Helper()
	var b [16]byte
	_, err := io.ReadFull(c, b[:])
	must(t, err)
	body = make([]byte, binary.LittleEndian.Uint32(b[:]))
	_, err = io.ReadFull(c, body)
	must(t, err)
	return b[4], body
}

// The nodes of a cluster are upgraded one after the other: a later build is welcome, also if it says more in its hello, and
// is told which version both speak. One that is too old is turned away with the reason.
func TestALaterBuildIsWelcome(t *testing.T) {
	t.Parallel()
	n := newPipes()
	n.node(t, "a", transport.Options{})
	if kind, body := speaks(t, n, "a", 3); kind != 2 || string(body) != "\x03\x00\x01a" {
		t.Errorf("the build before got a frame of kind %d: %q", kind, body)
	}
	if kind, body := speaks(t, n, "a", 4, 1, 'x'); kind != 2 || len(body) != 4+8 {
		t.Errorf("the build of version 4 got a frame of kind %d: %q", kind, body)
	}
	kind, now := speaks(t, n, "a", 5, 1, 'x', 1, 0, 0, 0, 0, 0, 0, 0)
	if kind != 2 || len(now) != 4+8+8 {
		t.Fatalf("this build got a frame of kind %d: %q", kind, now)
	}
	if kind, body := speaks(t, n, "a", 900, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4); kind != 2 || string(body) != string(now) {
		t.Errorf("a later build got a frame of kind %d: %q, want %q", kind, body, now)
	}
	if kind, body := speaks(t, n, "a", 2); kind != 3 || !strings.Contains(string(body), "version 2") || !strings.Contains(string(body), "too old") {
		t.Errorf("an old build got a frame of kind %d: %q", kind, body)
	}
}

// A node that wants a version which this build does not speak is not talked to.
func TestAnUnknownVersionIsRefusedLoudly(t *testing.T) {
	t.Parallel()
	n := newPipes()
	l := n.listen("b")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, len(hello(0, "test", "a"))+1+8))
			_, _ = c.Write(frame(2, 0, []byte{132, 3, 1, 'b'}))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	a := n.node(t, "a", transport.Options{})
	a.SetPeer("b", "b")
	until(t, "an error that says so", func() bool {
		err := a.Stats().Peers["b"].Err
		return err != nil && strings.Contains(err.Error(), "version 900")
	})
}
