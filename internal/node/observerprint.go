package node

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/daybook-data/daybook/cluster/observer"
	"github.com/daybook-data/daybook/cluster/status"
)

// printObserver prints how far an observer is: first what is wrong, then who it copies from, then the streams that are
// behind, or with all set every one.
func printObserver(out io.Writer, s *status.Cluster, all bool) (err error) {
	o := s.Observer
	fmt.Fprintf(out, "observer %d of cluster %s\n", s.Node, cmp.Or(o.Cluster, "(not known yet)"))
	fmt.Fprintf(out, "%s: %s\n\n", many(len(o.Streams), "stream", "streams"), observerVerdict(s))
	printUpstreams(out, o.Upstreams)
	shown := o.Streams
	if !all {
		shown = slices.DeleteFunc(slices.Clone(shown), func(m observer.StreamStatus) bool {
			return m.LagRecords == 0 && m.LagBytes == 0 && len(m.Stopped) == 0
		})
	}
	if len(shown) > 0 {
		fmt.Fprintln(out)
		printMirrors(out, shown)
	}
	if left := len(o.Streams) - len(shown); left > 0 {
		_, err = fmt.Fprintf(out, "\n%s copied as far as is known (shown with --all)\n", many(left, "stream is", "streams are"))
	}
	for _, m := range s.Members {
		if m.Problem != "" && err == nil {
			_, err = fmt.Fprintf(out, "\nproblem: %s\n", m.Problem)
		}
	}
	return err
}

// observerVerdict is the first line.
func observerVerdict(s *status.Cluster) string {
	if s.Counts.Problems > 0 {
		return "NOT IN ORDER, see below"
	}
	return "in order"
}

func printUpstreams(out io.Writer, upstreams []observer.UpstreamStatus) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "UPSTREAM\tGIVEN\tSTATE\tJOURNALS\tERROR")
	for _, u := range upstreams {
		state, given := "not connected", "no"
		if u.Connected {
			state = "connected"
		}
		if u.Given {
			given = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", u.Address, given, state, u.Journals, cmp.Or(u.Error, "-"))
	}
	_ = w.Flush() // the last write to out tells
}

func printMirrors(out io.Writer, streams []observer.StreamStatus) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STREAM\tBEHIND\tRECORDS\tBYTES\tCOPYING")
	for _, m := range streams {
		copying := "yes"
		if len(m.Stopped) > 0 {
			copying = "STOPPED"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", m.Stream, m.Lag.Round(time.Millisecond), m.LagRecords, bytesText(m.LagBytes), copying)
	}
	_ = w.Flush() // the last write to out tells
}
