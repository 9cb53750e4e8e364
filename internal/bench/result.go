package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// result is one measured run.
type result struct {
	name      string
	records   int64 // counted at the destination
	bytes     int64
	wall      time.Duration
	clientCPU time.Duration
	serverCPU time.Duration
}

func (r result) rate() float64 { return float64(r.records) / r.wall.Seconds() }

func (r result) print(w io.Writer, name string) {
	million := float64(r.records) / 1e6
	client := "-"
	if r.clientCPU > 0 {
		client = fmt.Sprintf("%.2f", r.clientCPU.Seconds()/million)
	}
	fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.2f\t%s\t%.2f\t\n", name, r.records, r.rate(),
		float64(r.bytes)/1e6/r.wall.Seconds(), r.wall.Seconds(), client, r.serverCPU.Seconds()/million)
}

// median returns the run with the median rate.
func median(runs []result) result {
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b result) int {
		switch {
		case a.rate() < b.rate():
			return -1
		case a.rate() > b.rate():
			return 1
		}
		return 0
	})
	return sorted[len(sorted)/2]
}

// clockTicks is how the kernel counts CPU time in /proc: USER_HZ, 100 on Linux.
const clockTicks = 100

// cpuOf returns the user and system time of a running process.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the command in parentheses and may hold spaces.
	_, rest, ok := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("reading CPU time of process %d: %q", pid, stat)
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks, nil
}

// ownCPU returns the user and system time of this process.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // documented to fail on bad arguments only
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
