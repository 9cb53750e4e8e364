package load

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrOptions is the cause of a run that was refused for what it was asked to do.
var ErrOptions = errors.New("load cannot be run as asked")

// ErrUnreachable is the cause of a run that found no server.
var ErrUnreachable = errors.New("no server answers")

// The modes of a run.
const (
	Produce = "produce"
	Consume = "consume"
	Both    = "both" // consumers read what the producers write, while they write it
)

// Options say what to run. The zero value of each field means its default.
type Options struct {
	// Brokers are addresses (host:port) of the servers. Required.
	Brokers []string
	// Stream is the stream or topic; "bench" if empty. It is made if it is missing.
	Stream string
	// Mode is Produce, Consume or Both; Produce if empty.
	Mode string
	// Partitions and Settings are those of a stream that is made: 8 partitions if 0. Replicas is 1 if 0.
	Partitions int
	Replicas   int
	Settings   map[string]string

	// Corpus is json (CDC-like, about 4.25:1), constant (about 38:1) or random (1:1); json if empty.
	Corpus string
	// Size is the bytes of each record's value; 1024 if 0.
	Size int
	// Compression is none, lz4, zstd, snappy or gzip; lz4 if empty.
	Compression string
	// BatchBytes bounds a batch before compression; 1 MB if 0.
	BatchBytes int
	// BatchRecords bounds the records of a batch; no bound if 0.
	BatchRecords int
	// RequestBatches is how many batches, each of another partition, a raw Produce request carries; if 0 as many as
	// the client has partitions, up to 1 MB.
	RequestBatches int

	// Clients is how many connections (raw) or clients run side by side in each direction; 2 if 0.
	Clients int
	// InFlight is how many requests of a raw client may wait for their answer; 5 if 0.
	InFlight int
	// Acks is all, 1 or 0; all if empty.
	Acks string
	// Linger is how long an application's batch waits for more records; 5 ms if 0, and negative means not at all.
	Linger time.Duration
	// Raw sends prepared batches and does not unpack what it reads.
	Raw bool

	// Records and Duration end the run, whichever comes first; 10 s if both are 0. Consume without Records ends at
	// what is the end of the stream when it starts.
	Records  int64
	Duration time.Duration
	// Rate is records a second over all clients; 0 is as many as there is room for.
	Rate float64

	// ServerPIDs are the server's processes, whose CPU time is measured; they run on this machine.
	ServerPIDs []int
	// Verify reads everything back afterwards.
	Verify bool
	// Patience is how long the run waits for acknowledged records to become readable; 30 s if 0.
	Patience time.Duration
}

func (o Options) withDefaults() (Options, error) {
	o.Stream, o.Mode = orDefault(o.Stream, "bench"), orDefault(o.Mode, Produce)
	o.Corpus, o.Compression, o.Acks = orDefault(o.Corpus, "json"), orDefault(o.Compression, "lz4"), orDefault(o.Acks, "all")
	o.Partitions, o.Replicas, o.Clients = orDefault(o.Partitions, 8), orDefault(o.Replicas, 1), orDefault(o.Clients, 2)
	o.Size, o.BatchBytes, o.InFlight = orDefault(o.Size, 1024), orDefault(o.BatchBytes, 1_000_000), orDefault(o.InFlight, 5)
	o.Linger, o.Patience = orDefault(o.Linger, 5*time.Millisecond), orDefault(o.Patience, 30*time.Second)
	if o.Records == 0 && o.Duration == 0 && o.Mode != Consume {
		o.Duration = 10 * time.Second
	}
	if len(o.Brokers) == 0 {
		return o, fmt.Errorf("%w: no brokers", ErrOptions)
	}
	for _, c := range []struct {
		name, value string
		of          []string
	}{
		{"mode", o.Mode, []string{Produce, Consume, Both}},
		{"corpus", o.Corpus, []string{"json", "constant", "random"}},
		{"compression", o.Compression, []string{"none", "lz4", "zstd", "snappy", "gzip"}},
		{"acks", o.Acks, []string{"all", "1", "0"}},
	} {
		if !slices.Contains(c.of, c.value) {
			return o, fmt.Errorf("%w: %s %q, want one of %v", ErrOptions, c.name, c.value, c.of)
		}
	}
	for _, c := range []struct {
		name              string
		value, least, top int
	}{
		{"partitions", o.Partitions, 1, 100_000}, {"clients", o.Clients, 1, 10_000}, {"in flight", o.InFlight, 1, 1000},
		{"size", o.Size, leastSize, 8 << 20}, {"batch bytes", o.BatchBytes, 1, 8 << 20},
		{"batch records", o.BatchRecords, 0, 1 << 20}, {"request batches", o.RequestBatches, 0, 100_000},
	} {
		if c.value < c.least || c.value > c.top {
			return o, fmt.Errorf("%w: %s is %d, want %d to %d", ErrOptions, c.name, c.value, c.least, c.top)
		}
	}
	switch {
	case o.Records < 0 || o.Duration < 0 || o.Rate < 0:
		return o, fmt.Errorf("%w: records, duration and rate are not negative", ErrOptions)
	case o.Verify && o.Mode == Consume:
		return o, fmt.Errorf("%w: only what this run has produced can be verified", ErrOptions)
	case !o.Raw && (o.BatchRecords > 0 || o.RequestBatches > 0):
		return o, fmt.Errorf("%w: an application's client decides how many records a batch and batches a request have; that takes raw", ErrOptions)
	case o.Rate > 0 && o.Mode == Consume:
		return o, fmt.Errorf("%w: a rate is for producing", ErrOptions)
	}
	return o, nil
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// recordsPerBatch is how many records a full batch has.
func (o Options) recordsPerBatch() int {
	n := max(1, (o.BatchBytes-batchHeaderBytes)/(o.Size+recordOverhead))
	if o.BatchRecords > 0 {
		n = min(n, o.BatchRecords)
	}
	return n
}
