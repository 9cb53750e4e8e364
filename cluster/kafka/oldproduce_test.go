package kafka_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// withoutOldProduce passes on what clients of the listener and the broker say to each
// other, and takes versions 0 to 2 of Produce out of the answers to ApiVersions.
func withoutOldProduce(t *testing.T, front net.Listener, addr string) {
	var wires sync.WaitGroup
	wires.Go(func() {
		for {
			client, err := front.Accept()
			if err != nil {
				return // it is closed
			}
			wires.Go(func() { passOn(t, client, addr) })
		}
	})
	t.Cleanup(func() { _ = front.Close(); wires.Wait() })
}

// passOn passes on what goes over one connection, until either side ends it.
func passOn(t *testing.T, client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		t.Errorf("reaching the broker: %v", err)
		return
	}
	var asked sync.Map // versions of ApiVersions requests, by correlation
	var both sync.WaitGroup
	half := func(from, to net.Conn, see func(frame []byte) []byte) {
		both.Go(func() {
			defer client.Close()
			defer server.Close()
			for {
				frame, err := readFrame(from)
				if err != nil {
					return
				}
				if _, err := to.Write(framed(see(frame))); err != nil {
					return
				}
			}
		})
	}
	half(client, server, func(frame []byte) []byte {
		if int16(binary.BigEndian.Uint16(frame)) == int16(kmsg.ApiVersions) {
			asked.Store(binary.BigEndian.Uint32(frame[4:]), int16(binary.BigEndian.Uint16(frame[2:])))
		}
		return frame
	})
	half(server, client, func(frame []byte) []byte {
		version, ok := asked.LoadAndDelete(binary.BigEndian.Uint32(frame))
		if !ok {
			return frame
		}
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.Version = version.(int16)
		if err := resp.ReadFrom(frame[4:]); err != nil {
			t.Errorf("reading an answer to ApiVersions: %v", err)
			return frame
		}
		for i := range resp.ApiKeys {
			if k := &resp.ApiKeys[i]; k.ApiKey == int16(kmsg.Produce) {
				k.MinVersion = 3
			}
		}
		return resp.AppendTo(frame[:4:4])
	})
	both.Wait()
}

// readFrame returns a frame without its length. The requests and answers of a suite's
// clients are trusted not to be endless.
func readFrame(c net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c, frame)
	return frame, err
}
