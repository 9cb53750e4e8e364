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
	"time"
)

// options is what the command line says.
type options struct {
	binary  string
	runs    int
	records int
	size    int
	changes int
	only    string

	journal  bool
	cluster  bool
	systems  []string
	seconds  time.Duration
	warm     time.Duration
	keepGB   float64
	replayGB float64
	profiles string
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
	flag.StringVar(&o.only, "only", "", "measure only what has this in its name, among the journal loads too")
	flag.BoolVar(&o.journal, "journal", false, "measure the journal loads, beside other systems")
	flag.BoolVar(&o.cluster, "cluster", false, "measure the loads of a cluster of three, beside another system's")
	asEcho := flag.Bool("echo", false, "only answer questions on a port, for the load of a bare server that this command puts on itself")
	systems := flag.String("systems", "daybook,kafka,nats", "systems for the journal loads")
	flag.DurationVar(&o.seconds, "for", 10*time.Second, "how long a run of a journal load takes")
	flag.DurationVar(&o.warm, "warm", 15*time.Second, "how long a JVM is warmed up by a journal load; others at most 2s")
	flag.Float64Var(&o.keepGB, "keep-gb", 2, "GB that the restart load has on disk")
	flag.StringVar(&o.profiles, "profiles", "", "a folder for profiles of idle nodes, taken after they were measured")
	flag.Float64Var(&o.replayGB, "replay-gb", 2, "GB that the replay load reads")
	flag.Parse()
	if *asEcho {
		if err := serveEcho(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	o.systems = strings.Split(*systems, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := measureJournal(ctx, o)
	if err == nil && !o.journal && !o.cluster {
		err = measure(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measureJournal runs the loads of one journal or of a cluster that were asked for.
func measureJournal(ctx context.Context, o options) error {
	loads, all := journalLoads(), o.journal
	if o.cluster {
		loads, all = clusterLoads(), true
	}
	var asked []journalLoad
	for _, l := range loads {
		if strings.Contains(l.name, o.only) && (all || o.only != "") {
			asked = append(asked, l)
		}
	}
	if len(asked) == 0 && all {
		return fmt.Errorf("no journal load has %q in its name", o.only)
	}
	return runJournalLoads(ctx, o, asked)
}

func measure(ctx context.Context, o options) error {
	benches := []bench{
		{"append and fetch, TCP, LZ4, durable", "append: 300,000 records/s", serverRun},
		{"binlog to durable journal, catch-up", "100,000 changes/s", binlogRun},
	}
	benches = slices.DeleteFunc(benches, func(b bench) bool { return !strings.Contains(b.name, o.only) })
	if len(benches) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\trecords\trecords/s\tMB/s\twall s\tclient CPU-s/M\tserver CPU-s/M\t")
	for _, b := range benches {
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
