package node

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/daybook-data/daybook/pipeline"
)

// collector exports the status of workers. Every kind of source has the same metrics, and
// so has every kind of sink; what only one of them knows is in daybook_source_events_total
// and daybook_sink_events_total.
type collector struct {
	status func() []pipeline.Status
}

var (
	sourceLabels = []string{"pipeline", "source", "kind"}
	sinkLabels   = []string{"pipeline", "sink", "kind"}
)

// metric is one number of a source or sink.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value float64
}

func sourceDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("daybook_source_"+name, help, append(sourceLabels, more...), nil)
}

func sinkDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("daybook_sink_"+name, help, append(sinkLabels, more...), nil)
}

// Describe sends nothing: what there is depends on the pipelines (an unchecked collector).
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the numbers of now.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.status() {
		for i := range s.Sources {
			collectSource(ch, s.Pipeline, &s.Sources[i])
		}
		for i := range s.Sinks {
			collectSink(ch, s.Pipeline, &s.Sinks[i])
		}
	}
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

func collectSource(ch chan<- prometheus.Metric, name string, s *pipeline.SourceStatus) {
	labels := []string{name, s.Name, s.Kind}
	send(ch, labels,
		metric{sourceDesc("up", "1 while all data moves or would move, else 0."), gauge, up(&s.Condition)},
		metric{sourceDesc("records_total", "Records that the journal has acknowledged."), counter, float64(s.Records)},
		metric{sourceDesc("bytes_total", "Bytes of keys and values that the journal has acknowledged."), counter, float64(s.Bytes)},
		metric{sourceDesc("repeats_total", "Records left out because the journal had them."), counter, float64(s.Repeats)},
		metric{sourceDesc("in_flight_bytes", "Bytes on their way to the journal."), gauge, float64(s.InFlight)},
	)
	events(ch, sourceDesc("events_total", "What only this kind of source counts.", "event"), labels, s.Report)
	if s.Report != nil {
		send(ch, labels, metric{sourceDesc("lag_seconds", "How far the source is behind its origin."), gauge, s.Report.Lag.Seconds()})
		for _, p := range s.Report.Parked {
			ch <- prometheus.MustNewConstMetric(sourceDesc("parked", "1 for each part of the origin that is left out until someone acts.", "part", "code", "since"),
				gauge, 1, append(labels, p.What, p.Code, p.Since)...)
		}
	}
}

func collectSink(ch chan<- prometheus.Metric, name string, s *pipeline.SinkStatus) {
	labels := []string{name, s.Name, s.Kind}
	send(ch, labels,
		metric{sinkDesc("up", "1 while data moves or would move, else 0."), gauge, up(&s.Condition)},
		metric{sinkDesc("read_total", "Records read from the journal."), counter, float64(s.Read)},
		metric{sinkDesc("records_total", "Records that are durable at the destination."), counter, float64(s.Records)},
		metric{sinkDesc("bytes_total", "Bytes of records that are durable at the destination."), counter, float64(s.Bytes)},
		metric{sinkDesc("batches_total", "Batches handed to the destination."), counter, float64(s.Batches)},
		metric{sinkDesc("retries_total", "Attempts after an error."), counter, float64(s.Retries)},
		metric{sinkDesc("filtered_total", "Records outside of the sink's where."), counter, float64(s.Filtered)},
		metric{sinkDesc("dead_letters_total", "Records that the destination refused, kept in the dead-letter stream."), counter, float64(s.DeadLetters)},
		metric{sinkDesc("late_total", "Records that came after their time was released."), counter, float64(s.Late)},
		metric{sinkDesc("held_records", "Records waiting in the reorderer."), gauge, float64(s.Held)},
		metric{sinkDesc("held_bytes", "Bytes waiting in the reorderer."), gauge, float64(s.HeldBytes)},
		metric{sinkDesc("behind_offsets", "Offsets in the journal that are not delivered: records, and the marks that end transactions."), gauge, float64(s.Behind)},
		metric{sinkDesc("lag_seconds", "How long the sink is behind the journal."), gauge, s.Lag.Seconds()},
	)
	if !s.Watermark.IsZero() {
		send(ch, labels, metric{sinkDesc("watermark_seconds", "Event time below which all is released, in seconds since 1970."), gauge, float64(s.Watermark.UnixMicro()) / 1e6})
	}
	events(ch, sinkDesc("events_total", "What only this kind of sink counts.", "event"), labels, s.Report)
}

func send(ch chan<- prometheus.Metric, labels []string, metrics ...metric) {
	for _, m := range metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value, labels...)
	}
}

func events(ch chan<- prometheus.Metric, desc *prometheus.Desc, labels []string, r *pipeline.Report) {
	if r == nil {
		return
	}
	for name, n := range r.Counters {
		ch <- prometheus.MustNewConstMetric(desc, gauge, float64(n), append(labels, strings.ReplaceAll(name, " ", "_"))...)
	}
}

func up(c *pipeline.Condition) float64 {
	if c.State == pipeline.StateRunning || c.State == pipeline.StateDone {
		return 1
	}
	return 0
}
