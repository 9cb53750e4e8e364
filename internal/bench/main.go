// Command bench measures Daybook from outside: the binary as a user runs it, counted at the
// destination, with CPU-seconds beside wall time since machines are noisy. It
// prints each run and the median; the figures of record are in docs/bench.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

// options is what the command line says.
type options struct {
	binary  string
	runs    int
	records int
	size    int
	changes int
	only    string
}

// bench is one thing that is measured.
type bench struct {
	name string
	bar  string
	run  func(ctx context.Context, o options) ([]result, error)
}

func main() {
	// The client shares two cores with what is measured: collect its garbage rarely.
	debug.SetGCPercent(800)
	var o options
	flag.StringVar(&o.binary, "binary", "bin/daybook", "the daybook binary")
	flag.IntVar(&o.runs, "runs", 3, "runs of each measurement; the median counts")
	flag.IntVar(&o.records, "records", 2_000_000, "records appended and fetched in a run")
	flag.IntVar(&o.size, "size", 1024, "bytes a record")
	flag.IntVar(&o.changes, "changes", 1_000_000, "single-row changes in the binlog")
	flag.StringVar(&o.only, "only", "", "measure only what has this in its name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, o options) error {
	benches := []bench{
		{"append and fetch, TCP, LZ4, durable", "append: 300,000 records/s", serverRun},
		{"binlog to durable journal, catch-up", "100,000 changes/s", binlogRun},
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\trecords\trecords/s\tMB/s\twall s\tclient CPU-s/M\tserver CPU-s/M\t")
	for _, b := range benches {
		if !strings.Contains(b.name, o.only) {
			continue
		}
		byName := map[string][]result{}
		for range o.runs {
			results, err := b.run(ctx, o)
			if err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
			for _, r := range results {
				r.print(w, r.name)
				byName[r.name] = append(byName[r.name], r)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			median(byName[name]).print(w, "median "+name)
		}
		fmt.Fprintf(w, "(bar: %s)\t\t\t\t\t\t\t\n", b.bar)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
