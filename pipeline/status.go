package pipeline

import (
	"cmp"
	"fmt"
	"time"
)

// Status is what a worker can say of itself at one moment, as numbers and states.
type Status struct {
	Pipeline string `json:"pipeline"`
	// Ready says that data moves: every source and sink is connected, or done.
	Ready   bool           `json:"ready"`
	Sources []SourceStatus `json:"sources"`
	Sinks   []SinkStatus   `json:"sinks"`
}

// SourceStatus is the state of one source. Counters run since the worker started.
type SourceStatus struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Stream string `json:"stream"`
	Condition
	// Position is the source's last durable position, in its own words; PositionText says
	// it as a person would, where the source knows how.
	Position     Position `json:"position,omitempty"`
	PositionText string   `json:"position_text,omitempty"`
	// Ends are the offsets behind the last of its records that are durable.
	Ends    map[int32]int64 `json:"ends,omitempty"`
	Records int64           `json:"records"`
	Bytes   int64           `json:"bytes"`
	// Repeats are records left out because the journal has them.
	Repeats  int64 `json:"repeats"`
	InFlight int64 `json:"in_flight_bytes"`
	// Pending are positions known from the journal that have not come again.
	Pending int     `json:"pending,omitempty"`
	Report  *Report `json:"report,omitempty"`
}

// SinkStatus is the state of one sink. Counters run since the worker started, but for
// DeadLetters and Late: those count what is kept in the sink's streams beside, from
// earlier runs too.
type SinkStatus struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Streams []string `json:"streams"`
	Condition
	// Cursor is the lowest offset of each partition that is not durable at the
	// destination.
	Cursor      map[Partition]int64 `json:"cursor,omitempty"`
	Read        int64               `json:"read"`
	Records     int64               `json:"records"` // delivered
	Bytes       int64               `json:"bytes"`
	Batches     int64               `json:"batches"`
	Retries     int64               `json:"retries"`
	Filtered    int64               `json:"filtered"`
	DeadLetters int64               `json:"dead_letters"`
	Late        int64               `json:"late"`
	Held        int64               `json:"held"`
	HeldBytes   int64               `json:"held_bytes"`
	// Watermark is the event time below which all has been released; zero where records
	// are not ordered.
	Watermark time.Time `json:"watermark,omitzero"`
	// Behind is how many offsets of the journal are not delivered yet: records, and the
	// marks that end transactions, which have one each. Only 0 is exact. Lag is how long
	// the sink is behind by the clock of the journal.
	Behind int64         `json:"behind"`
	Lag    time.Duration `json:"lag"`
	Report *Report       `json:"report,omitempty"`
}

// Status returns the state of all sources and sinks of the worker.
func (w *Worker) Status() Status {
	s := Status{Pipeline: w.pipeline, Ready: true}
	for _, in := range w.sources {
		s.Sources = append(s.Sources, in.status())
	}
	for _, d := range w.sinks {
		s.Sinks = append(s.Sinks, d.status())
	}
	for i := range s.Sources {
		s.Ready = s.Ready && s.Sources[i].ready()
	}
	for i := range s.Sinks {
		s.Ready = s.Ready && s.Sinks[i].ready()
	}
	return s
}

// ready reports whether data moves, here or in another worker, or has all been moved.
func (c *Condition) ready() bool {
	return c.State == StateRunning || c.State == StateStandby || c.State == StateDone
}

func (in *ingest) status() SourceStatus {
	s := SourceStatus{
		Name: in.entry.Name, Kind: in.entry.Kind, Stream: in.entry.Stream, Condition: in.condition.get(),
		Records: in.count.records.Load(), Bytes: in.count.bytes.Load(), Repeats: in.count.repeats.Load(),
		Report: reportOf(in.source),
	}
	in.mu.Lock()
	live := in.live
	s.Position, s.Ends = in.last.Position, in.last.Ends
	in.mu.Unlock()
	if live != nil {
		durable := live.flight.durablePrefix()
		s.Position, s.Ends = durable.resume, durable.reached
		s.InFlight = live.flight.onTheWay()
		s.Pending = live.emitter.expected()
	}
	if d, ok := in.source.(Describer); ok && s.Position != "" {
		s.PositionText = d.Describe(s.Position)
	}
	if s.Report != nil && len(s.Report.Parked) > 0 && s.ready() {
		first := s.Report.Parked[0]
		s.State, s.Code, s.ErrorAt = StateDegraded, first.Code, first.At
		s.Error = fmt.Sprintf("%d parked, the first: [%s] %s: %s (fix: %s)", len(s.Report.Parked), first.Code, first.What, first.Why, first.Fix)
	}
	return s
}

func (d *deliver) status() SinkStatus {
	c := &d.count
	s := SinkStatus{
		Name: d.entry.Name, Kind: d.entry.Kind, Streams: d.entry.Streams, Condition: d.condition.get(),
		Read: c.in.Load(), Records: c.out.Load(), Bytes: c.bytes.Load(), Batches: c.batches.Load(), Retries: c.retries.Load(),
		Filtered: c.filtered.Load(), DeadLetters: c.dead.Load(), Late: c.late.Load(), Held: c.held.Load(), HeldBytes: c.heldBytes.Load(),
		Behind: c.behind.Load(),
	}
	if at := d.cursor.Load(); at != nil {
		s.Cursor = *at
	}
	if w := c.watermark.Load(); w != 0 {
		s.Watermark = time.UnixMicro(w).UTC()
	}
	if at := cmp.Or(c.stamp.Load(), c.waiting.Load()); at != 0 && s.Behind > 0 {
		s.Lag = max(time.Since(time.UnixMicro(at)), 0)
	}
	if sink := d.opened.Load(); sink != nil {
		s.Report = reportOf(*sink)
	}
	return s
}

// reportOf returns what a connector says of itself, nil where it says nothing.
func reportOf(connector any) *Report {
	r, ok := connector.(Reporter)
	if !ok {
		return nil
	}
	report := r.Report()
	return &report
}
