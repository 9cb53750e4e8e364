package main

import (
	"context"

	"github.com/daybook-data/daybook/internal/load"
)

// serverRun appends through the Kafka protocol to a fresh `daybook server` and reads it
// all back, as an application does.
func serverRun(ctx context.Context, o options) ([]result, error) {
	s, err := startDaybook(ctx, o.binary, durable)
	if err != nil {
		return nil, err
	}
	defer s.close()
	l := load.Options{Brokers: s.addrs, Settings: s.settings, Records: int64(o.records), Size: o.size, ServerPIDs: s.pids}
	appended, err := load.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	l.Mode, l.Clients = load.Consume, 1
	fetched, err := load.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	return []result{resultOf("append", appended, appended.Produced), resultOf("fetch", fetched, fetched.Consumed)}, nil
}
