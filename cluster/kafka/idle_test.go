package kafka_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// idleConnections is just below what a server takes by default.
const idleConnections = 9_900

// Clients keep their connections for hours between two requests. The server is
// another process, so that what is measured is its own.
func TestTenThousandIdleConnectionsCostLittleAndDisturbNobody(t *testing.T) {
	s := newChild(t)
	produce(t, s.client(), numbered("t", 100)...)
	before := residentMiB(t, s.cmd.Process.Pid)
	conns := make([]net.Conn, idleConnections)
	for i := range conns {
		c, err := net.DialTimeout("tcp", s.addr, 20*time.Second)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
		conns[i] = c
		if _, err := c.Write(apiVersions(3)); err != nil {
			t.Fatal(err)
		}
		readAnswer(t, c)
	}
	after := residentMiB(t, s.cmd.Process.Pid)
	t.Logf("%d idle connections take %d MiB", len(conns), after-before)
	if most := 300 * shadow; after-before > most {
		t.Errorf("%d idle connections take %d MiB, want at most %d", len(conns), after-before, most)
	}
	produce(t, s.client(), numbered("t", 100)...)
	for i := 0; i < len(conns); i += 100 { // they are still served
		if _, err := conns[i].Write(request(kmsg.NewPtrMetadataRequest(), 1)); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		readAnswer(t, conns[i])
	}
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// residentMiB is the memory that a process has in use.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := resident.FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
