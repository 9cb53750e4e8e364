package redis_test

import (
	"fmt"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks/sinktest"
)

// BenchmarkWrite puts rows of a table of nine columns, in batches of 2,000.
func BenchmarkWrite(b *testing.B) {
	server := services.RedisForTest(b, services.Options{})
	for _, kind := range []string{"hash", "string"} {
		b.Run(kind, func(b *testing.B) {
			config := newConfig(server.Addr)
			config.Type, config.Key = kind, kind+":{id}"
			s := sinktest.Open(b, config, sinktest.NewEnv(b))
			batch := make([]pipeline.Delivery, 2000)
			for i := range batch {
				batch[i] = sinktest.Put(int64(i), fmt.Sprintf(`{"id":%d,"customer_id":%d,"status":"paid","total":"129.90","currency":"EUR",`+
					`"created_at":"2026-09-01T12:00:00Z","updated_at":"2026-09-01T12:00:00Z","note":null,"lines":[{"sku":"A-1","n":2}]}`, i, i*7))
			}
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				for i := range batch {
					batch[i].Version++
				}
				sinktest.Write(b, s, batch...)
				sinktest.Flush(b, s, int64(rows))
				rows += len(batch)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
