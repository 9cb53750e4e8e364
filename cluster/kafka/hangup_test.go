package kafka_test

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka"
)

// asks writes a request and reads its answer.
func asks(t *testing.T, c net.Conn, request []byte) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(length[:]))); err != nil {
		t.Fatal(err)
	}
}

// served has a client served. The first answer that counts changes what the end looks like once it is written, so there are two.
func served(t *testing.T, c net.Conn) {
	t.Helper()
	for range 2 {
		asks(t, c, request(kmsg.NewPtrMetadataRequest(), 1))
	}
}

// ends says how a connection ended.
func ends(t *testing.T, what string, c net.Conn, want error) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, want) {
		t.Errorf("%s: reading gave %v, want %v", what, err, want)
	}
}

// A client takes an orderly end instead of the first answer that counts for a server that wants TLS or a login, and gives
// up for good; a server that restarts must not look like that.
func TestClosingServerResetsConnectionsItHasNotAnswered(t *testing.T) {
	bothWays(t, func(t *testing.T, b *broker) {
		began, introduced, busy := b.dial(), b.dial(), b.dial()
		if _, err := began.Write([]byte{0, 0}); err != nil { // it has begun to ask
			t.Fatal(err)
		}
		asks(t, introduced, apiVersions(3))
		asks(t, busy, apiVersions(3))
		served(t, busy)
		eventually(t, "being accepted", func() error {
			if b.server.Load().Stats().Connections < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		b.restart()
		ends(t, "a client that has begun to ask", began, syscall.ECONNRESET)
		ends(t, "a client that has introduced itself", introduced, syscall.ECONNRESET)
		if !b.pipe {
			ends(t, "a client that was served", busy, io.EOF)
		}
	})
}

// The same with TLS, whose own word for an end is an orderly one.
func TestClosingServerResetsEncryptedConnections(t *testing.T) {
	ca := newAuthority(t)
	b := newBroker(t, false)
	addr := b.also(kafka.Access{TLS: &tls.Config{Certificates: []tls.Certificate{ca.server()}}})
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: ca.pool})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asks(t, c, apiVersions(3))
	b.restart()
	ends(t, "a client that has introduced itself", c, syscall.ECONNRESET)
}

// A process that is killed closes nothing: its connections end as the system does it.
func TestKilledServerResetsConnectionsItHasNotAnswered(t *testing.T) {
	t.Parallel()
	server := newChild(t)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", server.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		asks(t, c, apiVersions(3))
		return c
	}
	introduced, busy := dial(), dial()
	served(t, busy)
	server.kill()
	ends(t, "a client that has introduced itself", introduced, syscall.ECONNRESET)
	ends(t, "a client that was served", busy, io.EOF)
}

// Who is turned away for a fault of its own gets the answer that says so.
func TestAClientAtFaultIsAnsweredBeforeItsEnd(t *testing.T) {
	b := newBroker(t, false)
	c := b.dial()
	asks(t, c, apiVersions(3))
	never := request(kmsg.NewPtrMetadataRequest(), 1)
	binary.BigEndian.PutUint16(never[4+2:], 99) // that version is not offered
	if _, err := c.Write(never); err != nil {
		t.Fatal(err)
	}
	ends(t, "a client that asks what is not offered", c, io.EOF)
}
