package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTicks is how the kernel counts CPU time in /proc: USER_HZ, 100 on Linux.
const clockTicks = 100

// CPUOf returns the user and system time that running processes have used.
func CPUOf(pids ...int) (total time.Duration, err error) {
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, fmt.Errorf("reading CPU time of process %d: %w", pid, err)
		}
		// The second field is the command in parentheses and may hold spaces.
		_, rest, ok := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 13 {
			return 0, fmt.Errorf("reading CPU time of process %d: %q", pid, stat)
		}
		for _, f := range fields[11:13] { // utime, stime
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading CPU time of process %d: %w", pid, err)
			}
			total += time.Duration(n) * time.Second / clockTicks
		}
	}
	return total, nil
}

// RSSOf returns the bytes of memory that a running process has in RAM.
func RSSOf(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading memory of process %d: %q", pid, statm)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// OwnCPU returns the user and system time of this process.
func OwnCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // documented to fail on bad arguments only
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
