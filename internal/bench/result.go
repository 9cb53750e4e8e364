package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/daybook-data/daybook/internal/load"
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

// resultOf is one direction of a run of the load generator.
func resultOf(name string, r *load.Report, p *load.Part) result {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return result{
		name: name, records: p.Records, bytes: int64(p.MB * p.Seconds * 1e6), wall: seconds(p.Seconds),
		clientCPU: seconds(r.ClientCPU), serverCPU: seconds(*r.ServerCPU),
	}
}
