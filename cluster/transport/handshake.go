package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// The connections of a session.
const (
	laneControl = iota
	laneBulk
	lanes
	// laneStranger is that of one question by a node that does not know the cluster yet; see [Ask].
	laneStranger = 0xff
	// laneObserver is the connection of an observer that pulls copies; see [Observe].
	laneObserver = 0xfe
)

// askedBuffer and answerBuffer are how much of small frames is read at once, on the asked and on the asking side; large ones
// go past it.
const askedBuffer, answerBuffer = 64 << 10, 16 << 10

// hello is what the one who opens a connection says first.
type hello struct {
	lane          uint8
	version       uint16
	instance      uint64 // of the process, to tell two that have one id
	cluster, node string
	address       string // where the node is reached; empty: it does not say
	start         uint64 // of the node; 0: it does not say
}

func (h hello) frame() []byte {
	b := append(make([]byte, headerBytes), h.lane)
	b = putName(putName(putU64(putU16(b, h.version), h.instance), h.cluster), h.node)
	b = putName(b, h.address)
	b = putU64(b, h.start)
	header{length: uint32(len(b) - headerBytes), kind: kindHello}.put(b)
	return b
}

func parseHello(body []byte) (h hello, err error) {
	r := bodyReader{body[helloBytes:]}
	h.lane, h.version, h.instance = body[0], binary.LittleEndian.Uint16(body[1:]), binary.LittleEndian.Uint64(body[3:])
	var ok [2]bool
	h.cluster, ok[0] = r.name()
	h.node, ok[1] = r.name()
	if ok[1] && h.version >= versionAddress {
		h.address, ok[1] = r.name()
	}
	if ok[1] && h.version >= versionStarts {
		if ok[1] = len(r.b) >= 8; ok[1] {
			h.start = r.u64()
		}
	}
	if !ok[0] || !ok[1] || len(r.b) > 0 && h.version <= version || (h.node == "" || h.lane >= lanes && h.lane != laneObserver) && h.lane != laneStranger {
		return h, fmt.Errorf("%w: hello is malformed", errProtocol)
	}
	return h, nil
}

// welcome is the answer to a hello: which version both speak, and who this is.
func welcome(h hello, node string, me life) []byte {
	b := putName(putU16(make([]byte, headerBytes), min(h.version, version)), node)
	if h.version >= versionAddress {
		b = putU64(b, me.instance)
	}
	if h.version >= versionStarts {
		b = putU64(b, me.start)
	}
	header{length: uint32(len(b) - headerBytes), kind: kindWelcome}.put(b)
	return b
}

// parseWelcome reads who welcomes; what its build does not say is 0.
func parseWelcome(body []byte) (node string, who life, err error) {
	r := bodyReader{body[2:]}
	node, ok := r.name()
	if !ok {
		return "", who, fmt.Errorf("%w: welcome is malformed", errProtocol)
	}
	if len(r.b) >= 8 {
		who.instance = r.u64()
	}
	if len(r.b) >= 8 {
		who.start = r.u64()
	}
	return node, who, nil
}

// refusal is the other answer, with its reason.
func refusal(o objection) []byte {
	b := append(make([]byte, headerBytes), o.reason[:min(len(o.reason), maxErrorText)]...)
	header{length: uint32(len(b) - headerBytes), kind: kindRefusal, flags: o.flags}.put(b)
	return b
}

// readFrame reads one frame of a handshake.
func readFrame(r io.Reader, want ...frameKind) (header, []byte, error) {
	h, err := readHeader(r)
	if err != nil {
		return h, nil, err
	}
	for _, k := range want {
		if h.kind == k {
			body, err := readBody(r, h)
			return h, body, err
		}
	}
	return h, nil, fmt.Errorf("%w: frame of kind %d in a handshake", errProtocol, h.kind)
}

func readBody(r io.Reader, h header) ([]byte, error) {
	body := make([]byte, h.length)
	_, err := io.ReadFull(r, body)
	return body, err
}

// connected is a connection that this node opened, and who is at its other end.
type connected struct {
	net.Conn
	r        *bufio.Reader
	node     string
	instance uint64 // of the process there; 0: it does not say
}

// connect opens one connection and introduces this node to whoever is there, which has to be the peer with the given id
// unless that is empty.
func (t *Transport) connect(ctx context.Context, id, address string, lane uint8) (*connected, error) {
	raw, err := t.o.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })
	c, err := t.introduce(ctx, raw, id, address, lane)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

func (t *Transport) introduce(ctx context.Context, raw net.Conn, id, address string, lane uint8) (*connected, error) {
	conn, r, body, err := t.o.hail(ctx, raw, address, hello{
		lane: lane, version: version, instance: t.instance, cluster: t.o.Cluster, node: t.o.Node, address: t.o.Advertise, start: t.o.Start,
	})
	if err != nil {
		return nil, err
	}
	c := &connected{Conn: conn, r: r}
	var who life
	if c.node, who, err = parseWelcome(body); err != nil {
		return nil, err
	}
	c.instance = who.instance
	if id != "" && c.node != id {
		return nil, fmt.Errorf("node at %s is %q, expected %q: its address belongs to another node now", address, c.node, id)
	}
	if err := t.authenticate(c.node, address, conn); err != nil {
		return nil, err
	}
	if o := t.setBack(c.node, who); c.node != t.o.Node && o.reason != "" {
		return nil, fmt.Errorf("node %s is not let in: %s", c.node, o.reason)
	}
	return c, nil
}

// hail secures a connection that this side opened, says hello, and returns the welcome.
func (o *Options) hail(ctx context.Context, conn net.Conn, address string, h hello) (net.Conn, *bufio.Reader, []byte, error) {
	if o.TLS != nil {
		c := o.TLS
		if c.ServerName == "" {
			c = c.Clone()
			c.ServerName, _, _ = net.SplitHostPort(address)
		}
		secured := tls.Client(conn, c)
		if err := secured.HandshakeContext(ctx); err != nil {
			return conn, nil, nil, err
		}
		conn = secured
	}
	if _, err := conn.Write(h.frame()); err != nil {
		return conn, nil, nil, err
	}
	r := bufio.NewReaderSize(conn, answerBuffer)
	got, body, err := readFrame(r, kindWelcome, kindRefusal)
	if err == nil && got.kind == kindRefusal {
		return conn, r, nil, &RefusedError{Address: address, Reason: string(body), Doubled: got.flags&flagDoubled != 0, Foreign: got.flags&flagForeign != 0, SetBack: got.flags&flagSetBack != 0}
	}
	if err != nil {
		return conn, r, nil, err
	}
	if v := binary.LittleEndian.Uint16(body); v < oldest || v > version {
		return conn, r, nil, fmt.Errorf("node at %s wants version %d of the protocol, this node speaks %s", address, v, spoken())
	}
	return conn, r, body, nil
}

func (t *Transport) authenticate(node, address string, conn net.Conn) error {
	state := stateOf(conn)
	if state == nil || t.o.Authenticate == nil {
		return nil
	}
	return t.o.Authenticate(node, address, *state)
}

// stateOf is what TLS knows of the other side; nil without it.
func stateOf(conn net.Conn) *tls.ConnectionState {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secured.ConnectionState()
	return &state
}

// receive takes the hello of the node that opened a connection, and answers it.
func (t *Transport) receive(ctx context.Context, conn net.Conn) (net.Conn, *bufio.Reader, hello, error) {
	if err := conn.SetDeadline(time.Now().Add(t.o.Timeout)); err != nil {
		return conn, nil, hello{}, err
	}
	if t.o.TLS != nil {
		secured := tls.Server(conn, t.o.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			return conn, nil, hello{}, err
		}
		conn = secured
	}
	r := bufio.NewReaderSize(conn, askedBuffer)
	_, body, err := readFrame(r, kindHello)
	if err != nil {
		return conn, nil, hello{}, err
	}
	h, err := parseHello(body)
	if err != nil {
		return conn, nil, h, err
	}
	if o := t.objection(h, conn); o.reason != "" {
		_, _ = conn.Write(refusal(o)) // it is turned away in any case
		return conn, nil, h, fmt.Errorf("node %q: %s", h.node, o.reason)
	}
	if _, err := conn.Write(welcome(h, t.o.Node, life{t.o.Start, t.instance})); err != nil {
		return conn, nil, h, err
	}
	return conn, r, h, conn.SetDeadline(time.Time{})
}

// objection is why who said hello is not wanted, for it to read and, in flags, to act on. The zero value is none.
type objection struct {
	reason string
	flags  uint8
}

func (t *Transport) objection(h hello, conn net.Conn) objection {
	switch {
	case h.version < oldest:
		return objection{reason: fmt.Sprintf("it speaks version %d of the protocol at most, this node %s: its build is too old for this cluster", h.version, spoken())}
	case h.lane == laneStranger && t.o.HandleStranger == nil:
		return objection{reason: "this node takes nobody in"}
	case h.lane == laneStranger && h.node == "":
		return objection{}
	case h.lane == laneStranger && h.instance == t.instance:
		return objection{} // this node greets itself
	case h.lane == laneObserver && t.o.Observe == nil:
		return objection{reason: "this node serves no observers"}
	case h.lane == laneObserver && observes(h.cluster, t.o.Cluster):
		return objection{}
	case h.cluster != t.o.Cluster:
		return stranger(h.cluster, t.o.Cluster)
	case h.node == t.o.Node:
		return objection{reason: fmt.Sprintf("it calls itself %q, as this node does: every node needs an id of its own", h.node)}
	}
	if err := t.authenticate(h.node, h.address, conn); err != nil {
		return objection{reason: fmt.Sprintf("its certificate is not that of node %s: %v", h.node, err)}
	}
	if o := t.doubled(h); o.reason != "" {
		return o
	}
	return t.setBack(h.node, life{h.start, h.instance})
}

// spoken is which versions this build speaks, in words.
func spoken() string {
	if oldest == version {
		return fmt.Sprint(version)
	}
	return fmt.Sprintf("%d to %d", oldest, version)
}
