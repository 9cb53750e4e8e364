package main

import (
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// A hang-up stops as SIGTERM does: a server hands over what it leads, instead of being killed.
func TestAHangUpStopsInOrder(t *testing.T) {
	stops := syscall.SIGHUP
	if signal.Ignored(stops) { // the tests were started with nohup, by which a hang-up is to be ignored
		stops = syscall.SIGTERM
	}
	ctx, stop := untilStopped()
	defer stop()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, stops} {
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		if sig == stops {
			break // a second one would end the process
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
}
