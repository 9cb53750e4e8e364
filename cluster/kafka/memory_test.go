package kafka_test

import (
	"encoding/binary"
	"net"
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
