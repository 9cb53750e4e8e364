package services_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
)

// lifecycle holds what every server must do: two run side by side, one keeps
// what it confirmed through a crash, and an ended one is gone.
type lifecycle struct {
	a, b  *services.Server
	close func() error                    // ends a
	write func(t *testing.T, addr string) // one record, the same at each address
	count func(t *testing.T, addr string) int
}

func (l lifecycle) test(t *testing.T) {
	if l.a.Addr == l.b.Addr || l.a.Dir == l.b.Dir {
		t.Fatalf("two servers share %s or %s", l.a.Addr, l.a.Dir)
	}
	want := func(addr string, n int) {
		t.Helper()
		if got := l.count(t, addr); got != n {
			t.Errorf("%s holds %d records, want %d", addr, got, n)
		}
	}
	l.write(t, l.a.Addr)
	want(l.a.Addr, 1)
	want(l.b.Addr, 0)

	addr, pid := l.a.Addr, l.a.PID
	if err := l.a.Kill(); err != nil {
		t.Fatal(err)
	}
	refused(t, addr)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := l.a.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if l.a.PID == pid || l.a.Addr != addr {
		t.Errorf("after Restart: pid %d on %s, want another pid than %d on %s", l.a.PID, l.a.Addr, pid, addr)
	}
	want(addr, 1)

	if err := l.a.Stop(); err != nil {
		t.Fatal(err)
	}
	refused(t, addr)
	if err := l.a.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	want(addr, 1)
	want(l.b.Addr, 0)

	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	refused(t, addr)
	if _, err := os.Stat(l.a.Dir); !os.IsNotExist(err) {
		t.Errorf("the temporary directory after Close: %v, want it gone", err)
	}
	if err := l.a.Restart(ctx); err == nil {
		t.Error("Restart after Close succeeded, want an error")
	}
}

// refused waits until nobody accepts connections at addr: the kernel closes the socket of
// a killed child (nginx's worker) a moment after the parent is gone.
func refused(t *testing.T, addr string) {
	t.Helper()
	eventually(t, addr+" refuses connections after its server has ended", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

func port(t *testing.T, addr string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}
