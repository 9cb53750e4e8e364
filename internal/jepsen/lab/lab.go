//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
)

// Options are those of New.
type Options struct {
	// Machines is how many there are, 1 to 100.
	Machines int
	// DiskBytes is the size of each machine's disk; 1 GiB by default. It takes memory as it fills.
	DiskBytes int64
	// Seed makes the network draw the same lots again.
	Seed uint64
	// Logs is the folder for the output of processes, one file a machine; it must exist.
	Logs string
}

// A Lab is machines with a network between them, and one more that clients dial from. Close it.
type Lab struct {
	Network  *Network
	machines []*Machine
	client   *Machine
	home     *os.File // the network namespace of this process
}

// clientPort is the client's number in the network.
const clientPort = 0

// New makes a lab. All of its links are up.
func New(o Options) (*Lab, error) {
	if err := missing(); err != nil {
		return nil, err
	}
	if o.DiskBytes == 0 {
		o.DiskBytes = 1 << 30
	}
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	l := &Lab{Network: newNetwork(o.Seed), home: home}
	for i := range o.Machines + 1 {
		m, err := newMachine(l.Network, i, o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("making machine %d of the lab: %w", i, err), l.Close())
		}
		if i == clientPort {
			l.client = m
			continue
		}
		l.machines = append(l.machines, m)
	}
	return l, nil
}

// Machine returns a machine by its number, counted from 1.
func (l *Lab) Machine(n int) *Machine { return l.machines[n-1] }

// Machines returns how many there are.
func (l *Lab) Machines() int { return len(l.machines) }

// Close kills what runs on the machines and lets go of all.
func (l *Lab) Close() error {
	var errs []error
	for _, m := range l.machines {
		errs = append(errs, m.close())
	}
	if l.client != nil {
		errs = append(errs, l.client.close())
	}
	l.Network.close()
	errs = append(errs, l.home.Close())
	return errors.Join(errs...)
}

// address is a machine's in its network.
func address(port int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(port + 1)}) }

// missing says what this machine lacks.
func missing() error {
	var errs []error
	lack := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if os.Geteuid() != 0 {
		lack("this process is not root: run the tests as root (sudo -E make test), in a container with --privileged")
	}
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		lack("%w: load the kernel's module tun, or give the container the device (--device /dev/net/tun)", err)
	} else {
		_ = f.Close()
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		lack("%w: load the kernel's module loop, or run the container with --privileged", err)
	}
	for tool, pack := range map[string]string{"mount": "mount", "mkfs.ext4": "e2fsprogs", "fsfreeze": "util-linux"} {
		if _, err := exec.LookPath(tool); err != nil {
			lack("%w: install Debian's package %s", err, pack)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("tests with real machines in namespaces can't run here: %w", errors.Join(errs...))
}
