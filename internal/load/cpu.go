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

// Memory is what of a process is in RAM, in bytes.
type Memory struct {
	RSS       int64 // all of it
	Anonymous int64 // of this without pages of files, as those of the binary, which processes share
}

// MemoryOf returns what of a running process is in RAM.
func MemoryOf(pid int) (Memory, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return Memory{}, err
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(statm), &size, &resident, &shared); err != nil {
		return Memory{}, fmt.Errorf("reading memory of process %d from %q: %w", pid, statm, err)
	}
	page := int64(os.Getpagesize())
	return Memory{RSS: resident * page, Anonymous: (resident - shared) * page}, nil
}

// OwnCPU returns the user and system time of this process.
func OwnCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // documented to fail on bad arguments only
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
