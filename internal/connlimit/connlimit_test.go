package connlimit_test

import (
	"net"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/connlimit"
)

// As many as there is room for are let in, the others are closed at once and told of once, and who leaves makes room.
func TestOneTooManyIsTurnedAway(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	turned := make(chan bool, 100)
	l := connlimit.New(inner, 2, func() { turned <- true })
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	in := []net.Conn{}
	for range 2 {
		dial()
		in = append(in, <-accepted)
	}
	for range 3 {
		dial()
	}
	over := dial()
	_ = over.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := over.Read(make([]byte, 1)); err == nil {
		t.Fatal("one too many is answered")
	}
	<-turned
	if len(turned) > 0 || len(accepted) > 0 {
		t.Fatalf("told %d times more, %d more let in", len(turned), len(accepted))
	}
	_ = in[0].Close()
	_ = in[0].Close() // makes room once
	dial()
	c := <-accepted
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	over = dial()
	_ = over.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := over.Read(make([]byte, 1)); err == nil {
		t.Error("one too many is answered")
	}
	<-turned
	if connlimit.Share(7, 1) > 7 || connlimit.Share(1<<30, 1<<62) != 1 {
		t.Error("a share is at most the most, and at least one")
	}
}
