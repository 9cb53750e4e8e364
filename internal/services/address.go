package services

import (
	"net"
	"strconv"
	"testing"
)

// Address returns an address (host:port) of this machine that no other process using this package gets, and none of the
// kernel's own choosing, until it is released: what is killed finds it free again.
func Address() (addr string, release func() error, err error) {
	c, err := openCache()
	if err != nil {
		return "", nil, err
	}
	l, err := c.leasePort(0)
	if err != nil {
		return "", nil, err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port)), l.Close, nil
}

// AddressForTest is Address until the test ends.
func AddressForTest(t testing.TB) string {
	t.Helper()
	addr, release, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return addr
}
