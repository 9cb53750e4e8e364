package node

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropBinary takes the pages of the program's own file out of the address space. The kernel maps sixteen for each that is
// touched, and starting touches a few everywhere: 26 MB, of which a server at rest uses a quarter. They stay in the page
// cache, shared by all processes of the file, and come back by a minor fault when they are used.
func dropBinary() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // it is only for the sake of memory
	}
	defer f.Close()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, m := range clean(bufio.NewScanner(f), exe) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED) // advice
	}
}

// mapped is a stretch of the address space.
type mapped struct{ from, to uintptr }

// clean returns where a file is mapped to be read or run, by what /proc/PID/smaps says. A mapping of which a page was written
// to is left out: a debugger's breakpoints and the kernel's uprobes would be lost with it.
func clean(smaps *bufio.Scanner, file string) (all []mapped) {
	var m mapped
	var perm string
	ours := false
	for smaps.Scan() {
		line := smaps.Text()
		switch name, value, _ := strings.Cut(line, ":"); {
		case strings.HasSuffix(line, " "+file):
			n, _ := fmt.Sscanf(line, "%x-%x %s", &m.from, &m.to, &perm)
			ours = n == 3 && (perm == "r-xp" || perm == "r--p")
		case name == "VmFlags": // the last line of a mapping
			ours = false
		case ours && name == "Anonymous" && strings.TrimSpace(value) == "0 kB":
			all = append(all, m)
		}
	}
	return all
}
