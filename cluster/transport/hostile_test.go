package transport_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/transport"
)

// frame is a frame of the protocol, as doc.go draws it.
func frame(kind byte, seq uint64, body []byte) []byte {
	b := make([]byte, 16, 16+len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	b[4] = kind
	binary.LittleEndian.PutUint64(b[8:], seq)
	return append(b, body...)
}

func hello(lane byte, cluster, node string) []byte {
	b := []byte{lane, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, byte(len(cluster))}
	b = append(append(b, cluster...), byte(len(node)))
	return frame(1, 0, append(b, node...))
}

// member is the address on the wire of node a's member of the group.
func member() []byte {
	sum := sha256.Sum256(append(group[:], "a"...))
	return sum[:16:16]
}

// appendFrame is the first frame of an append to the group, of total bytes in all.
func appendFrame(seq uint64, total uint32, first []byte) []byte {
	b := append(make([]byte, 0, 52), member()...)
	for _, v := range []uint64{1, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return frame(5, seq, append(binary.LittleEndian.AppendUint32(b, total), first...))
}

// connect opens a connection and says hello.
func connect(t testing.TB, n *pipes, to string, lane byte) net.Conn {
	t.Helper()
	c, err := n.dial(t.Context(), to)
	must(t, err)
	must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	if _, err := c.Write(hello(lane, "test", "evil")); err != nil {
		t.Fatal(err)
	}
	var b [16]byte
	if _, err := io.ReadFull(c, b[:]); err != nil || b[4] != 2 {
		t.Fatalf("got no welcome: %v, %v", b, err)
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.LittleEndian.Uint32(b[:]))); err != nil {
		t.Fatal(err)
	}
	return c
}

// A peer that breaks the protocol loses its connection at once, and costs nobody memory.
func TestAPeerThatBreaksTheProtocolIsCutOff(t *testing.T) {
	t.Parallel()
	n := newPipes()
	var log logs
	tr := n.node(t, "a", transport.Options{Logger: log.logger()})
	g := openGroup(t, tr)
	follow(t, g, nil)
	long := frame(5, 1, nil)
	binary.LittleEndian.PutUint32(long, 1<<31)
	for name, sent := range map[string][]byte{
		"garbage":                     bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10),
		"zeroes":                      make([]byte, 64),
		"absurd length":               long,
		"unknown kind":                frame(99, 1, []byte("x")),
		"an answer":                   frame(12, 1, make([]byte, 28)),
		"an append of 2 GB":           appendFrame(1, 1<<31, make([]byte, 1<<20)),
		"an append that starts short": appendFrame(1, 2<<20, make([]byte, 100)),
		"more of nothing":             frame(6, 9, []byte("more")),
		"half a pulse":                frame(4, 1, make([]byte, 39)),
		"two with one number":         append(appendFrame(1, 2<<20, make([]byte, 1<<20)), appendFrame(1, 2<<20, make([]byte, 1<<20))...),
		"a second hello":              hello(0, "test", "evil"),
		"a bad configuration":         frame(10, 1, append(append(append([]byte(nil), member()...), make([]byte, 44)...), 0xc1, 0xff, 0xff)),
	} {
		c := connect(t, n, "a", 1)
		before := tr.Stats().Broken
		go func() { _, _ = c.Write(sent) }() // it fails when the other side has seen enough
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: the connection did not end: %v", name, err)
		}
		until(t, name+" to be noticed", func() bool { return tr.Stats().Broken > before })
		_ = c.Close()
	}
	until(t, "all memory to be given back", func() bool { return tr.Stats().HeldBytes == 0 })
	if !log.has("breaks the protocol") {
		t.Error("nothing was logged")
	}
}

// Who opens connections in vain, again and again, is counted each time and does not fill the log.
func TestRefusedConnectionsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	n := newPipes()
	var log logs
	tr := n.node(t, "a", transport.Options{Logger: log.logger()})
	const times = 20
	for i := range uint64(times) {
		c, err := n.dial(t.Context(), "a")
		must(t, err)
		go func() { _, _ = c.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10)) }()
		until(t, "the connection to be refused", func() bool { return tr.Stats().Refused > i })
		_ = c.Close()
	}
	until(t, "a line", func() bool { return log.has("a connection was refused") })
	if lines := log.count("a connection was refused"); lines >= times {
		t.Errorf("%d connections of one host made %d lines", times, lines)
	}
}

// What looks like frames but is not is refused to the sender, before raft or the journal sees it.
func TestEntriesThatAreNoFramesAreRefused(t *testing.T) {
	t.Parallel()
	n := newPipes()
	tr := n.node(t, "a", transport.Options{})
	f := follow(t, openGroup(t, tr), nil)
	j, _ := source(t, 100)
	good, err := j.Frame(1)
	must(t, err)
	late := bytes.Clone(good)
	binary.LittleEndian.PutUint64(late[24:], 9) // a term that the request's leader cannot know
	c := connect(t, n, "a", 1)
	for i, body := range [][]byte{bytes.Repeat([]byte{0xff}, 300), good[:len(good)-16], late, append(bytes.Clone(good), good...)} {
		go func() { _, _ = c.Write(appendFrame(uint64(i+1), uint32(len(body)), body)) }()
		var h [20]byte
		if _, err := io.ReadFull(c, h[:]); err != nil || h[4] != 12 || binary.LittleEndian.Uint64(h[8:]) != uint64(i+1) || h[16] != 2 {
			t.Fatalf("append %d: got %v, %v; want a refusal", i, h, err)
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.LittleEndian.Uint32(h[:]))-4); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := f.got(); len(got) > 0 {
		t.Errorf("raft saw %d of them", len(got))
	}
}

// FuzzPeer says anything to a node, and answers anything to one that asks: it must neither crash nor hold memory.
func FuzzPeer(f *testing.F) {
	j, _ := source(f, 100, 50)
	var frames []byte
	for i := uint64(1); i <= 2; i++ {
		b, err := j.Frame(i)
		must(f, err)
		frames = append(frames, b...)
	}
	f.Add(appendFrame(1, uint32(len(frames)), frames))
	f.Add(append(appendFrame(1, 1<<20+10, make([]byte, 1<<20)), frame(6, 1, make([]byte, 10))...))
	f.Add(frame(4, 0, append(make([]byte, 8), append(member(), make([]byte, 16)...)...)))
	f.Add(frame(7, 3, append(member(), make([]byte, 24)...)))
	snapshot := append(append([]byte(nil), member()...), make([]byte, 44)...)
	snapshot[16+32] = 4
	f.Add(append(frame(10, 2, append(snapshot, raft.EncodeConfiguration(raft.Configuration{})...)), frame(11, 2, []byte("data"))...))
	f.Add(frame(12, 1, make([]byte, 28)))
	f.Add(frame(13, 1, make([]byte, 36)))
	f.Add(frame(14, 1, make([]byte, 4)))
	f.Add(append(frame(17, 1, member()), frame(16, 1, append([]byte{1, 0, 0, 0}, make([]byte, 40)...))...))
	f.Fuzz(func(t *testing.T, said []byte) {
		n := newPipes()
		tr := n.node(t, "a", transport.Options{Timeout: 200 * time.Millisecond})
		g := openGroup(t, tr)
		follow(t, g, func(rpc raft.RPC, _ int) (any, error) {
			if rpc.Reader != nil {
				if _, err := io.Copy(io.Discard, rpc.Reader); err != nil {
					return nil, err
				}
			}
			return yes(rpc)
		})
		l := n.listen("evil")
		defer l.Close()
		tr.SetPeer("evil", "evil")
		speak := func(c net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, c) }() // ends with the connection
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = c.Write(said)
			_ = c.Close()
		}
		speak(connect(t, n, "a", 1))
		c, err := l.Accept() // it asks; its answer is anything
		must(t, err)
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.CopyN(io.Discard, c, int64(len(hello(0, "test", "a"))+1)); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(append(frame(2, 0, append([]byte{1, 0, 4}, "evil"...)), said...))
		_ = c.Close()
		must(t, g.Close())
		must(t, tr.Close())
		if held := tr.Stats().HeldBytes; held != 0 {
			t.Fatalf("%d bytes are held", held)
		}
	})
}
