package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/load"
	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) benchCommand() *cobra.Command {
	var o load.Options
	var durability string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench --brokers HOST:PORT",
		Short: "Load a Daybook server or a Kafka, and measure it",
		Long: `Produces records into a stream, reads them, or both, and prints records and megabytes a
second, the CPU time that took, and how long answers took. It speaks to anything that
speaks Kafka's protocol. Records are counted in the stream, by its ends before and after.

By default it works as an application does: records are batched and compressed while it
runs, which on one machine costs more than the server does. --raw sends batches that were
prepared before, and reads without unpacking: what is measured then is the server.

--rate is an open loop: each record is due at its time, and its latency counts from then,
so that a stall shows in full. Without it clients send as fast as they are answered.

CORPUS is json (changes of rows, about 4.25:1 in batches of 1 MB), constant (about 38:1 in
batches of 100 records) or random (1:1).`,
		Example: `  daybook bench --brokers 127.0.0.1:9092
  daybook bench --brokers 127.0.0.1:9092 --mode both --rate 20000 --linger -1s --duration 30s
  daybook bench --brokers 127.0.0.1:9092 --raw --corpus constant --batch-records 100 --partitions 200 --durability replicated --server-pid 4711
  daybook bench --brokers 127.0.0.1:9092 --mode consume --raw --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			debug.SetGCPercent(400) // the client may share the machine with what it measures
			if durability != "" {
				o.Settings = map[string]string{"daybook.durability": durability}
			}
			r, err := load.Run(cmd.Context(), o)
			switch {
			case errors.Is(err, load.ErrOptions):
				return fmt.Errorf("%w: %w", node.ErrConfig, err)
			case errors.Is(err, load.ErrUnreachable):
				return fmt.Errorf("%w: %w", node.ErrEnvironment, err)
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(c.stdout).Encode(r)
			}
			return r.Text(c.stdout)
		},
	}
	f := cmd.Flags()
	f.StringVar(&durability, "durability", "", "of a stream that is made: durable or replicated (Daybook only)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	loadFlags(cmd, &o)
	return cmd
}

// loadFlags are the flags that say what is sent and read.
func loadFlags(cmd *cobra.Command, o *load.Options) {
	f := cmd.Flags()
	f.StringSliceVar(&o.Brokers, "brokers", []string{"127.0.0.1:9092"}, "addresses of the servers, host:port")
	f.StringVar(&o.Stream, "stream", "bench", "stream or topic; made if it is missing")
	f.StringVar(&o.Mode, "mode", load.Produce, "produce, consume, or both at a time")
	f.IntVar(&o.Partitions, "partitions", 8, "partitions of a stream that is made")
	f.IntVar(&o.Replicas, "replicas", 1, "replicas of a stream that is made")
	f.StringVar(&o.Corpus, "corpus", "json", "what records are: json, constant or random")
	f.IntVar(&o.Size, "size", 1024, "bytes of a record's value")
	f.StringVar(&o.Compression, "compression", "lz4", "none, lz4, zstd, snappy or gzip")
	f.IntVar(&o.BatchBytes, "batch-bytes", 1_000_000, "most bytes of a batch before compression")
	f.IntVar(&o.BatchRecords, "batch-records", 0, "most records of a batch, with --raw; 0 for no such bound")
	f.IntVar(&o.RequestBatches, "request-batches", 0, "batches in a request, each of another partition, with --raw; 0 for up to 1 MB")
	f.IntVar(&o.Clients, "clients", 2, "clients in each direction")
	f.IntVar(&o.InFlight, "in-flight", 5, "requests of a client that may wait for their answer, with --raw")
	f.StringVar(&o.Acks, "acks", "all", "all, 1 or 0")
	f.DurationVar(&o.Linger, "linger", o.Linger, "how long a batch waits for more records (default 5ms; negative for not at all)")
	f.BoolVar(&o.Raw, "raw", false, "send prepared batches, read without unpacking")
	f.Int64Var(&o.Records, "records", 0, "end after about this many records")
	f.DurationVar(&o.Duration, "duration", 0, "end after this time (default 10s, if --records is not given either)")
	f.Float64Var(&o.Rate, "rate", 0, "records a second, an open loop; 0 for as many as there is room for")
	f.IntSliceVar(&o.ServerPIDs, "server-pid", nil, "process ids of the server, on this machine: tells its CPU time")
	f.BoolVar(&o.Verify, "verify", false, "read all back at the end and compare it")
}
