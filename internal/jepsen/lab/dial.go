//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Dial connects from the clients' machine; the address must be an IP address with a port. It is what kgo.Dialer takes.
func (l *Lab) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	// A socket belongs to the namespace of the thread that opens it.
	runtime.LockOSThread()
	conn, err := l.client.dial(ctx, network, address)
	if back := l.leave(); back != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, errors.Join(err, back) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return conn, err
}

func (m *Machine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := unix.Setns(int(m.net.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("entering the clients' namespace: %w", err)
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	// A dialer that opens its socket on another thread would have reached somebody else.
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok || local.AddrPort().Addr().Unmap() != m.Address() {
		return nil, errors.Join(fmt.Errorf("dialled from %v, not from the clients' machine %v", conn.LocalAddr(), m.Address()), conn.Close())
	}
	return conn, nil
}

// leave takes the calling thread back to the process's own network.
func (l *Lab) leave() error {
	if err := unix.Setns(int(l.home.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("leaving the clients' namespace: %w", err)
	}
	return nil
}
