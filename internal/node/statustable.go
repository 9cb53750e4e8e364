package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/daybook-data/daybook/pipeline"
)

// printStatus prints what a person wants to know first: does it move, how far is it
// behind, and what is wrong.
func printStatus(out io.Writer, all []pipeline.Status, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(w, "pipeline %s\n\n", s.Pipeline)
		fmt.Fprintln(w, "SOURCE\tKIND\tSTATE\tFOR\tSTREAM\tRECORDS\tPHASE\tLAG")
		for _, src := range s.Sources {
			report := orReport(src.Report)
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", src.Name, src.Kind, src.State, since(now, src.Since), src.Stream,
				src.Records, cmp.Or(report.Phase, "-"), report.Lag.Round(time.Millisecond))
		}
		fmt.Fprintln(w, "\nSINK\tKIND\tSTATE\tFOR\tBEHIND\tLAG\tDELIVERED\tDEAD\tLATE\tHELD\tWATERMARK")
		for _, snk := range s.Sinks {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%s\n", snk.Name, snk.Kind, snk.State, since(now, snk.Since), snk.Behind,
				snk.Lag.Round(time.Millisecond), snk.Records, snk.DeadLetters, snk.Late, snk.Held, timeOrDash(snk.Watermark))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		printDetails(out, s)
	}
	return nil
}

// printDetails prints positions, cursors, what connectors say, and errors.
func printDetails(out io.Writer, s pipeline.Status) {
	fmt.Fprintln(out)
	for _, src := range s.Sources {
		fmt.Fprintf(out, "%s: position %s\n", src.Name, cmp.Or(src.PositionText, string(src.Position), "none yet"))
		printReport(out, src.Name, src.Report)
		printError(out, src.Name, src.Condition)
	}
	for _, snk := range s.Sinks {
		for _, p := range sortedPartitions(snk.Cursor) {
			fmt.Fprintf(out, "%s: cursor %s@%d\n", snk.Name, p, snk.Cursor[p])
		}
		printReport(out, snk.Name, snk.Report)
		printError(out, snk.Name, snk.Condition)
	}
}

func printReport(out io.Writer, name string, r *pipeline.Report) {
	if r == nil {
		return
	}
	if r.Detail != "" {
		fmt.Fprintf(out, "%s: %s\n", name, r.Detail)
	}
	for _, p := range r.Parked {
		fmt.Fprintf(out, "%s: PARKED %s since %s: [%s] %s (fix: %s)\n", name, p.What, p.Since, p.Code, p.Why, p.Fix)
	}
}

func printError(out io.Writer, name string, c pipeline.Condition) {
	if c.Waits != "" {
		fmt.Fprintf(out, "%s: waits for %s\n", name, c.Waits)
	}
	if c.Error != "" && c.State != pipeline.StateDegraded { // that has its own lines
		fmt.Fprintf(out, "%s: last error, %s: %s\n", name, c.ErrorAt.Format(time.RFC3339), c.Error)
	}
}

func orReport(r *pipeline.Report) pipeline.Report {
	if r == nil {
		return pipeline.Report{}
	}
	return *r
}

func since(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return now.Sub(t).Round(time.Second).String()
}

func timeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339Nano)
}

func sortedPartitions(m map[pipeline.Partition]int64) []pipeline.Partition {
	return slices.SortedFunc(maps.Keys(m), func(a, b pipeline.Partition) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Number, b.Number))
	})
}

// heldSource is what the journal holds of a source.
type heldSource struct {
	Source string `json:"source"`
	pipeline.SourceCursor
}

// heldCursor is the cursor of a sink as the journal holds it.
type heldCursor struct {
	Sink   string                       `json:"sink"`
	Cursor map[pipeline.Partition]int64 `json:"cursor"`
	Behind int64                        `json:"behind"`
	// DeadLetters and Late are how many records are kept beside.
	DeadLetters int64 `json:"dead_letters"`
	Late        int64 `json:"late"`
}

// cursors prints what the journal holds of a pipeline that does not run here.
func cursors(ctx context.Context, o StatusOptions) (err error) {
	if o.Where.File == "" {
		return fmt.Errorf("%w: no worker runs on that journal: give its --http address, or --file for what the journal holds", ErrEnvironment)
	}
	f, err := lookAt(o.Where.File)
	if err != nil {
		return err
	}
	if len(o.Where.Brokers) > 0 {
		f.Journal.Dir, f.Journal.Brokers = "", o.Where.Brokers
	}
	j, done, err := beside(ctx, f.Journal, o.Log)
	if err != nil {
		return err
	}
	defer closing(done, &err)
	h := held{Pipeline: f.Pipeline}
	for i := range f.Sources {
		at, err := j.SourceCursor(ctx, f.Pipeline, &f.Sources[i])
		if err != nil && at.Position == "" {
			return err
		}
		if err != nil {
			o.Log.Warn("a source can't say what its position means", "source", f.Sources[i].Name, "error", err)
		}
		h.Sources = append(h.Sources, heldSource{f.Sources[i].Name, at})
	}
	for i := range f.Sinks {
		at, behind, err := j.SinkCursor(ctx, f.Pipeline, &f.Sinks[i])
		if err != nil {
			return err
		}
		dead, late, err := j.KeptAside(ctx, f.Pipeline, f.Sinks[i].Name)
		if err != nil {
			return err
		}
		h.Sinks = append(h.Sinks, heldCursor{f.Sinks[i].Name, at, behind, dead, late})
	}
	if o.JSON {
		return json.NewEncoder(o.Out).Encode([]held{h})
	}
	h.print(o.Out)
	return nil
}

// held is what the journal holds of a pipeline.
type held struct {
	Pipeline string       `json:"pipeline"`
	Running  bool         `json:"running"` // false: no worker was asked
	Sources  []heldSource `json:"sources"`
	Sinks    []heldCursor `json:"sinks"`
}

func (h *held) print(out io.Writer) {
	fmt.Fprintf(out, "pipeline %s: no worker runs here; the journal holds\n", h.Pipeline)
	for _, s := range h.Sources {
		fmt.Fprintf(out, "%s: position %s\n", s.Source, cmp.Or(s.PositionText, string(s.Position), "none yet"))
		printReport(out, s.Source, &pipeline.Report{Parked: s.Parked})
	}
	for _, s := range h.Sinks {
		fmt.Fprintf(out, "%s: %d offsets behind, %d dead letters, %d late\n", s.Sink, s.Behind, s.DeadLetters, s.Late)
		for _, p := range sortedPartitions(s.Cursor) {
			fmt.Fprintf(out, "%s: cursor %s@%d\n", s.Sink, p, s.Cursor[p])
		}
	}
}
