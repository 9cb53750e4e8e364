package main

import "github.com/daybook-data/daybook/internal/load"

// journalLoads are the loads of `make bench-journal`, with the bars of docs/bench.
func journalLoads() []journalLoad {
	kafkas := []string{"daybook", "kafka"}
	one := load.Options{BatchRecords: 1, RequestBatches: 1, Clients: 400, InFlight: 1, Compression: "none"}
	open := one
	open.Rate, open.InFlight = 15_000, 100
	return []journalLoad{
		{
			"constant-38", "0.1 server CPU-s/M (10 M records/s per CPU-second)", replicated, kafkas, 1,
			produceLoad(load.Options{Corpus: "constant", BatchRecords: 100, Partitions: 200}),
		},
		{"json-1m", "0.3 server CPU-s/M", replicated, everybody, 1, produceLoad(load.Options{})},
		{"json-16k", "1.5 server CPU-s/M", replicated, everybody, 1, produceLoad(load.Options{BatchBytes: 16 << 10})},
		{"one-closed", "25 server CPU-s/M (40,000 records/s per CPU-second)", replicated, everybody, 1, oneLoad(one)},
		{"one-open", "p99 4 ms at 15,000/s", replicated, everybody, 1, oneLoad(open)},
		{"tail", "0.13 server CPU-s per M read, writes lose 5 % at most", replicated, kafkas, 1, tailLoad},
		{"replay", "80 % of the bare disk; live p99 1.3 times at most", replicated, kafkas, 1, replayLoad},
		{"ack-replicated", "p99 1 ms at 20 % load", replicated, everybody, 1, ackLoad},
		{"ack-durable", "p99 1.5 times the bare disk's + 1 ms at 20 % load", durable, everybody, 1, ackLoad},
		{"idle", "0.1 core, 150 MB", replicated, kafkas, 1, idleLoad},
		{"restart", "3 s to serve", replicated, kafkas, 1, restartLoad},
	}
}
