// Command demo shows Daybook's main job once, for real: it starts real servers in a
// temporary folder, runs the binary on them as a user would, and counts at the
// destinations. It exits with 0 only if every count is right.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	binary := flag.String("binary", "bin/daybook", "the daybook binary")
	keep := flag.Bool("keep", false, "leave the folder with the pipeline file, journal and output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo(ctx, *binary, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, binary string, keep bool) (err error) {
	start := time.Now()
	binary, err = filepath.Abs(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "daybook-demo-")
	if err != nil {
		return err
	}
	if !keep {
		defer os.RemoveAll(dir)
	}
	s, err := openStage(ctx, binary, dir)
	if err != nil {
		return err
	}
	defer s.close()
	for _, act := range []func(context.Context) error{s.prepare, s.live, s.compare, s.replay} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	title("All counts are right (%.0f s)", time.Since(start).Seconds())
	if keep {
		say("Kept: %s", dir)
	}
	return nil
}

// title prints the heading of an act, say a line below it.
func title(format string, args ...any) { fmt.Printf("\n== "+format+"\n", args...) }
func say(format string, args ...any)   { fmt.Printf("   "+format+"\n", args...) }
