package kafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// What clients have begun to send takes no more memory than the server allows in all,
// and who does not go on makes room for others.
func TestHalfSentRequestsTakeNoMoreThanTheServersMemory(t *testing.T) {
	const request, total, clients = 4 << 20, 16 << 20, 32
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) {
		k.MaxRequestBytes, k.MaxMemory, k.StallTimeout = request, total, 300*time.Millisecond
	})
	b.topic("t", 1, nil)
	before := memory()
	for range clients {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		head := binary.BigEndian.AppendUint32(nil, request)
		head = append(head, 0, 0, 0, 9) // Produce, version 9
		if _, err := c.Write(append(head, make([]byte, 32<<10)...)); err != nil {
			t.Fatal(err)
		}
	}
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		seen := int64(0)
		for {
			select {
			case <-stop:
				most <- seen
				return
			case <-time.After(20 * time.Millisecond):
				seen = max(seen, memory()-before)
			}
		}
	}()
	produce(t, b.client(), numbered("t", 100)...) // waits until the others are cut off
	close(stop)
	// 32 requests of 4 MiB were begun: 128 MiB.
	if got := <-most; got > total+16<<20 {
		t.Errorf("half-sent requests took %d MiB, allowed are %d", got>>20, total>>20)
	}
}

// Who has begun a request and does not go on is not waited for while others wait for its
// memory; who gets on as fast as it has to is left alone.
func TestHalfSentRequestsDoNotHoldUpOthers(t *testing.T) {
	const request, total = 4 << 20, 16 << 20
	b := newBroker(t, false, func(_ *cluster.Options, k *kafka.Options) {
		k.MaxRequestBytes, k.MaxMemory, k.StallTimeout = request, total, 3*time.Minute
	})
	b.topic("t", 1, nil)
	begin := func(sent int) net.Conn {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		head := append(binary.BigEndian.AppendUint32(nil, request), 0, 0, 0, 9) // Produce, version 9
		if _, err := c.Write(append(head, make([]byte, sent)...)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	good := begin(request - 8)
	for range 6 {
		begin(1 << 10)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := b.client().ProduceSync(ctx, numbered("t", 10)...).FirstErr(); err != nil {
		t.Fatalf("behind requests that do not go on: %v", err)
	}
	_ = good.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := good.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("whose request is nearly whole was cut off: %v", err)
	}
}
