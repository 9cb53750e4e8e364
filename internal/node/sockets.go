package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// A process that has an embedded journal open serves sockets in its folder, so that
// other verbs can work beside it: the Kafka protocol, the admin pages, and what is for its owner alone.
// Only the folder's owner can connect.
const (
	kafkaSocket = "kafka.sock"
	adminSocket = "admin.sock"
	ownerSocket = "owner.sock"
)

// listenSocket listens on a socket in dir. The caller holds the journal's lock,
// so a socket that is there was left by a process that is gone.
func listenSocket(dir, name string) (net.Listener, error) {
	path := filepath.Join(dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of an earlier process: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := net.Listen("unix", viaDescriptor(d, name))
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its path names a descriptor that is closed by then
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return &socketListener{Listener: l, path: path}, nil
}

// socketListener removes its file when it is closed.
type socketListener struct {
	net.Listener
	path string
}

func (l *socketListener) Close() error {
	err := l.Listener.Close()
	if rm := os.Remove(l.path); rm != nil && !errors.Is(rm, os.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}

// dialSocket connects to a socket in dir; ok is false where nobody listens.
func dialSocket(ctx context.Context, dir, name string) (conn net.Conn, ok bool, err error) {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	var dialer net.Dialer
	conn, err = dialer.DialContext(ctx, "unix", viaDescriptor(d, name))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("connecting to the process that has %s open: %w", dir, err)
	}
	return conn, true, nil
}

// viaDescriptor names a file of an open folder in a few characters: the path of a
// socket may have 107 bytes at most, that of a folder 4,096.
func viaDescriptor(d *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name)
}
