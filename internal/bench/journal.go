package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/daybook-data/daybook/internal/load"
)

// journalLoad is one load that journals are measured under, side by side.
type journalLoad struct {
	name string
	bar  string
	mode string // durability
	// systems are those that can do it.
	systems []string
	// nodes is how many processes of a system are one cluster, with a copy of everything on each.
	nodes int
	// run puts the load on a system once.
	run func(ctx context.Context, b *bed) ([]row, error)
}

// start starts a system for the load.
func (l journalLoad) start(ctx context.Context, o options, name string) (*system, error) {
	if l.nodes > 1 {
		return startCluster(ctx, o, name, l.mode, l.nodes)
	}
	return startSystem(ctx, o, name, l.mode)
}

// bed is a system under a load. It stays for all of the load's pairs.
type bed struct {
	*system
	o       options
	mode    string
	seconds time.Duration
	streams int
}

// row is a line of the table.
type row struct {
	what    string // within the load, where there is more than one
	batch   string
	ratio   float64
	records float64 // a second
	mb      float64 // a second
	client  float64 // CPU-seconds per million records
	server  float64
	latency *load.Latency
	note    string
}

var everybody = []string{"daybook", "kafka", "nats"}

// runJournalLoads measures the loads of that name, or all, and prints a table.
func runJournalLoads(ctx context.Context, o options, loads []journalLoad) error {
	for _, l := range loads {
		if err := runJournalLoad(ctx, o, l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// runJournalLoad starts every system, warms it up, and then lets them take turns, so that what else the machine does
// meets all of them alike.
func runJournalLoad(ctx context.Context, o options, l journalLoad) (err error) {
	var beds []*bed
	defer func() {
		for _, b := range beds {
			err = errors.Join(err, b.close())
		}
	}()
	for _, name := range l.systems {
		if !slices.Contains(o.systems, name) {
			continue
		}
		s, err := l.start(ctx, o, name)
		if err != nil {
			return err
		}
		b := &bed{system: s, o: o, mode: l.mode, seconds: min(o.warm, 2*time.Second)}
		if name == "kafka" {
			b.seconds = o.warm // a JVM compiles what it has run for long enough
		}
		beds = append(beds, b)
		if o.warm > 0 {
			if _, err := l.run(ctx, b); err != nil {
				return fmt.Errorf("warming %s up: %w", name, err)
			}
		}
		b.seconds = o.seconds
	}
	runs := make([][][]row, len(beds))
	for pair := range o.runs {
		for i := range beds {
			b := beds[(i+pair)%len(beds)]
			syscall.Sync() // what the one before left to be written is not this one's
			rows, err := l.run(ctx, b)
			if err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
			at := slices.Index(beds, b)
			runs[at] = append(runs[at], rows)
			fmt.Fprintf(os.Stderr, "%s, run %d of %s: %.0f records/s, %.3f server CPU-s/M\n", l.name, pair+1, b.name, rows[0].records, rows[0].server)
		}
	}
	return printLoad(os.Stdout, l, beds, runs)
}

func printLoad(out io.Writer, l journalLoad, beds []*bed, runs [][][]row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\n%s, %s; bar: %s\n", l.name, l.mode, l.bar)
	fmt.Fprintln(w, "system\twhat\tbatch\tratio\trecords/s\tMB/s\tclient CPU-s/M\tserver CPU-s/M (range)\tp50 ms\tp99 ms\tp99.9 ms\tnote")
	for i, b := range beds {
		for k := range runs[i][0] {
			var of []row
			for _, r := range runs[i] {
				of = append(of, r[k])
			}
			medianRow(of).print(w, b.name, of)
		}
	}
	return w.Flush()
}

// medianRow is the median of each figure.
func medianRow(of []row) row {
	m := of[0]
	mid := func(f func(row) float64) float64 {
		v := make([]float64, len(of))
		for i := range of {
			v[i] = f(of[i])
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	m.ratio, m.records, m.mb = mid(func(r row) float64 { return r.ratio }), mid(func(r row) float64 { return r.records }), mid(func(r row) float64 { return r.mb })
	m.client, m.server = mid(func(r row) float64 { return r.client }), mid(func(r row) float64 { return r.server })
	if m.latency != nil {
		m.latency = &load.Latency{
			P50: mid(func(r row) float64 { return r.latency.P50 }), P99: mid(func(r row) float64 { return r.latency.P99 }),
			P999: mid(func(r row) float64 { return r.latency.P999 }),
		}
	}
	var notes []string
	for _, r := range of {
		if r.note != "" && !slices.Contains(notes, r.note) {
			notes = append(notes, r.note)
		}
	}
	m.note = strings.Join(notes, "; ")
	return m
}

func (r row) print(w io.Writer, system string, of []row) {
	dash := func(v float64, format string) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf(format, v)
	}
	server := dash(r.server, "%.3f")
	if len(of) > 1 && r.server > 0 {
		least, most := of[0].server, of[0].server
		for _, o := range of {
			least, most = min(least, o.server), max(most, o.server)
		}
		server += fmt.Sprintf(" (%.3f-%.3f)", least, most)
	}
	p50, p99, p999 := "-", "-", "-"
	if l := r.latency; l != nil {
		p50, p99, p999 = fmt.Sprintf("%.2f", l.P50), fmt.Sprintf("%.2f", l.P99), fmt.Sprintf("%.2f", l.P999)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", system, r.what, r.batch, dash(r.ratio, "%.2f"), dash(r.records, "%.0f"),
		dash(r.mb, "%.0f"), dash(r.client, "%.3f"), server, p50, p99, p999, r.note)
}

// stream names a fresh stream, so that no run finds what another one has left.
func (b *bed) stream() string {
	b.streams++
	return fmt.Sprintf("bench-%d", b.streams)
}

// options completes those of a load with what the bed knows.
func (b *bed) options(l load.Options) load.Options {
	l.Brokers, l.Settings, l.ServerPIDs, l.Replicas = b.addrs, b.settings, b.pids, b.replicas
	if l.Stream == "" {
		l.Stream = b.stream()
	}
	if l.Duration == 0 && l.Records == 0 {
		l.Duration = b.seconds
	}
	return l
}

// rowOf is a line about one direction of a run.
func rowOf(what string, r *load.Report, p *load.Part) row {
	million := float64(p.Records) / 1e6
	out := row{what: what, ratio: r.Ratio, records: p.PerSecond, mb: p.MB, latency: p.Latency, client: r.ClientCPU / million, server: *r.ServerCPU / million}
	if r.Batch > 0 {
		out.batch = fmt.Sprintf("%d x %d B", r.Batch, r.Size)
	}
	return out
}
