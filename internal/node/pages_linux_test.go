package node

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// What is dropped is what is only read or run of the program's file, and nobody has changed.
func TestOnlyCleanPagesOfTheProgramAreDropped(t *testing.T) {
	t.Parallel()
	var smaps strings.Builder
	for _, m := range []struct{ head, anonymous string }{
		{"00400000-00500000 r-xp 00000000 fe:00 7                          /opt/day book", "0 kB"},
		{"00500000-00600000 r-xp 00100000 fe:00 7                          /opt/day book", "4 kB"}, // a breakpoint
		{"00600000-00a00000 r--p 00200000 fe:00 7                          /opt/day book", "0 kB"},
		{"00a00000-00b00000 rw-p 00600000 fe:00 7                          /opt/day book", "0 kB"},
		{"00b00000-00c00000 rw-p 00000000 00:00 0", "0 kB"},
		{"7f0000000000-7f0000001000 r--s 00000000 fe:00 8                  /data/day book", "0 kB"},
		{"7f0000001000-7f0000002000 r--p 00000000 fe:00 9                  /opt/day book (deleted)", "0 kB"},
	} {
		smaps.WriteString(m.head + "\nSize:                 64 kB\nRss:                  64 kB\nAnonymous:         " + m.anonymous + "\nVmFlags: rd ex mr\n")
	}
	got := clean(bufio.NewScanner(strings.NewReader(smaps.String())), "/opt/day book")
	want := []mapped{{0x400000, 0x500000}, {0x600000, 0xa00000}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapped{})); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// A program goes on without the pages of its file.
func TestTheProgramGoesOnWithoutItsPages(t *testing.T) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, m := range clean(bufio.NewScanner(bytes.NewReader(smaps)), exe) {
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_POPULATE_READ); e != 0 {
			t.Fatalf("touching all pages of the program: %v", e)
		}
		size += int(m.to - m.from)
	}
	before := filePages(t)
	dropBinary()
	if after := filePages(t); size == 0 || before-after < size/2 {
		t.Errorf("%d bytes of files were resident and %d are, of a program of %d", before, after, size)
	}
}

// filePages is how many bytes of files are resident in the process.
func filePages(t *testing.T) (n int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}
