// Setup installs the real servers that the tests, the demo and the examples run
// against, all of them or the named ones, and says how long each took:
//
//	go run ./internal/services/setup [NAME...]
//
// A server that this machine can't have is reported with the package to install,
// and the others are installed all the same; the exit code is 1 then.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/daybook-data/daybook/internal/services"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	names := os.Args[1:]
	if len(names) == 0 {
		names = services.Names()
	}
	failed := false
	for _, name := range names {
		start := time.Now()
		if err := services.Need(ctx, name); err != nil {
			failed = true
			fmt.Fprintln(os.Stderr, "setup:", err)
			continue
		}
		fmt.Printf("setup: %-13s ready after %.1f s\n", name, time.Since(start).Seconds())
	}
	if failed {
		os.Exit(1)
	}
}
