package reorder

// counters are kept as records go by.
type counters struct {
	pushed, released, late, dropped    uint64
	clamped, quarantined               uint64
	forcedHold, forcedCap              uint64
	forcedRecords                      uint64
	reread, takenBack                  uint64
	inversionsIn, inversionsOut        uint64
	lastIn, lastOut                    int64
	held                               int64
	disorder, disorderGlobal, lateness Histogram
}

// measure notes how far a record is behind its source and behind all.
func (b *Buffer[P]) measure(s *source, time int64) {
	if s.max > time {
		own := s.max - time
		s.maxDisorder = max(s.maxDisorder, own)
		b.stats.disorder.add(own)
	} else {
		b.stats.disorder.counts[0]++
	}
	if b.table.max > time {
		b.stats.disorderGlobal.add(b.table.max - time)
	} else {
		b.stats.disorderGlobal.counts[0]++
	}
}

// Quantiles summarises a Histogram, in µs.
type Quantiles struct {
	P50, P99, P999, P9999, Max int64
}

func (h *Histogram) quantiles() Quantiles {
	return Quantiles{h.Quantile(.5), h.Quantile(.99), h.Quantile(.999), h.Quantile(.9999), h.max}
}

// Metrics is a snapshot of what a Buffer does. Counters run since New; a restored
// buffer starts again from zero. Times are µs.
type Metrics struct {
	Watermark int64 // MinTime at first
	Clock     int64 // J; MinTime before the first record
	// Delay is how long the oldest record held has waited, in append time.
	Delay int64
	// HeldRecords and HeldBytes count what is in the buffer, with what Next has yet
	// to return.
	HeldRecords, HeldBytes int64
	// HoldingPartition and HoldingSource name the live source with the least M, which
	// holds the watermark. Empty when all are idle.
	HoldingPartition, HoldingSource string
	LiveSources, IdleSources        int

	Pushed      uint64 // new records, without those read again
	Released    uint64 // into the main output, late ones included if they pass
	Late        uint64 // however they were disposed of
	Dropped     uint64 // of the late ones
	Clamped     uint64
	Quarantined uint64
	// ForcedHold and ForcedCap count how often the watermark was raised by the hold
	// limit and the cap, ForcedRecords what left that way.
	ForcedHold, ForcedCap, ForcedRecords uint64
	// Reread counts records below the checkpoint's read position, TakenBack those of
	// them that were held again.
	Reread, TakenBack uint64
	// InversionsIn and InversionsOut count records with a lower time than the record
	// before, by event time as pushed and by order time as released.
	InversionsIn, InversionsOut uint64

	// Disorder is how far records were behind the greatest time of their own source;
	// DisorderGlobal behind that of all sources; Lateness how far late records were
	// below the watermark.
	Disorder, DisorderGlobal, Lateness Quantiles
}

// A SourceMetrics is the part of one source that has not been forgotten.
type SourceMetrics struct {
	Partition, Source          string // Source is the partition's name for the partition itself
	Max                        int64  // M, MinTime before the first plausible record
	Idle                       bool
	Late, Clamped, Quarantined uint64
	// Forced counts how often the watermark was raised by force while this source
	// held it.
	Forced                   uint64
	MaxLateness, MaxDisorder int64
}

// Metrics returns a snapshot. It costs a few microseconds.
func (b *Buffer[P]) Metrics() Metrics {
	c := &b.stats
	m := Metrics{
		Watermark: b.w, Clock: b.clock,
		HeldRecords: c.held, HeldBytes: b.bytes,
		Pushed: c.pushed, Released: c.released, Late: c.late, Dropped: c.dropped,
		Clamped: c.clamped, Quarantined: c.quarantined,
		ForcedHold: c.forcedHold, ForcedCap: c.forcedCap, ForcedRecords: c.forcedRecords,
		Reread: c.reread, TakenBack: c.takenBack,
		InversionsIn: c.inversionsIn, InversionsOut: c.inversionsOut,
		Disorder:       c.disorder.quantiles(),
		DisorderGlobal: c.disorderGlobal.quantiles(),
		Lateness:       c.lateness.quantiles(),
	}
	if a, ok := b.ages.oldest(b.w); ok {
		m.Delay = b.clock - a.stamp
	}
	live := &b.table.live
	m.LiveSources = len(live.ids)
	m.IdleSources = len(b.table.ranked) - m.LiveSources
	if len(live.ids) > 0 {
		s := &live.all[live.ids[0]]
		m.HoldingPartition, m.HoldingSource = b.table.parts[s.partition].name, s.name
	}
	return m
}

// Sources returns a snapshot of each source, by name.
func (b *Buffer[P]) Sources() []SourceMetrics {
	out := make([]SourceMetrics, 0, len(b.table.ranked))
	for _, id := range b.table.ranked {
		s := b.table.source(id)
		out = append(out, SourceMetrics{
			Partition: b.table.parts[s.partition].name, Source: s.name,
			Max: s.max, Idle: s.at == none,
			Late: s.late, Clamped: s.clamped, Quarantined: s.quarantined, Forced: s.forced,
			MaxLateness: s.maxLateness, MaxDisorder: s.maxDisorder,
		})
	}
	return out
}
