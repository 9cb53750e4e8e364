//go:build linux

package lab

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// mtu is a jumbo frame's: few packets, and yet several to a request.
const mtu = 9000

// openTUN makes the network device of the namespace of the calling thread, with its address, and returns its other end:
// one read or write is one IP packet.
func openTUN(a netip.Addr) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /dev/net/tun: %w", err)
	}
	if err := configureTUN(fd, a); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil // non-blocking: reads wait in the runtime's poller
}

func configureTUN(fd int, a netip.Addr) error {
	const device = "eth0"
	ifr, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return fmt.Errorf("making a TUN device: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	set := func(name string, request uint, fill func(*unix.Ifreq) error) error {
		ifr, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := fill(ifr); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(s, request, ifr); err != nil {
			return fmt.Errorf("configuring %s (request %#x): %w", name, request, err)
		}
		return nil
	}
	up := func(i *unix.Ifreq) error { i.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	ip := a.As4()
	for _, step := range []func() error{
		func() error {
			return set(device, unix.SIOCSIFADDR, func(i *unix.Ifreq) error { return i.SetInet4Addr(ip[:]) })
		},
		func() error {
			return set(device, unix.SIOCSIFNETMASK, func(i *unix.Ifreq) error { return i.SetInet4Addr([]byte{255, 255, 255, 0}) })
		},
		func() error {
			return set(device, unix.SIOCSIFMTU, func(i *unix.Ifreq) error { i.SetUint32(mtu); return nil })
		},
		func() error { return set(device, unix.SIOCSIFFLAGS, up) },
		func() error { return set("lo", unix.SIOCSIFFLAGS, up) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
