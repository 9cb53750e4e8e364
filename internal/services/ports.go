package services

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstPort is the lowest port that is given out.
const firstPort = 15000

// portLease is a TCP port of 127.0.0.1 that no other process using this package
// gets while the lease is held: a killed server finds its port free again.
//
// The ports lie below the range from which the kernel takes ports for outgoing
// connections and for listeners on port 0; otherwise one of those could take
// the port of a server that is just being restarted.
type portLease struct {
	port int
	file *os.File // holds the lock on the port's byte
}

// leasePort returns a free port, or the wanted one if want is not 0.
func (c cache) leasePort(want int) (*portLease, error) {
	if want != 0 {
		l, err := c.lockPort(want)
		if err != nil {
			return nil, fmt.Errorf("reserving port %d: %w", want, err)
		}
		return l, nil
	}
	end, err := ephemeralStart()
	if err != nil {
		return nil, err
	}
	var last error
	for range 200 {
		port := firstPort + rand.IntN(end-firstPort)
		l, err := c.lockPort(port)
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("finding a free port: %w", last)
}

func (l *portLease) Close() error { return l.file.Close() }

func (c cache) lockPort(port int) (*portLease, error) {
	f, err := os.OpenFile(filepath.Join(c.dir, "ports"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	// A lock of the open file, not of the process: it holds between two servers
	// of one process too, and ends with the file.
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		return nil, errors.Join(fmt.Errorf("another server holds it: %w", err), f.Close())
	}
	probe, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := probe.Close(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &portLease{port: port, file: f}, nil
}

// ephemeralStart returns the first port that the kernel may give out by itself.
func ephemeralStart() (int, error) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\t")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("reading the local port range: %w", err)
	}
	if n < firstPort+1000 {
		n = 65536 // a machine with hardly anything below: take the risk
	}
	return n, nil
}
