package nginx_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/pipeline"
)

// counting is an Emitter that takes everything.
type counting struct{ records, bytes int64 }

func (c *counting) Emit(_ context.Context, records []pipeline.Record, _ pipeline.Position) error {
	c.records += int64(len(records))
	for i := range records {
		c.bytes += int64(len(records[i].Value))
	}
	return nil
}

func (c *counting) Flush(context.Context) error { return nil }

// BenchmarkCombined reads a log of 200,000 lines as long as real ones.
func BenchmarkCombined(b *testing.B) {
	const lines = 200_000
	path := filepath.Join(b.TempDir(), "access.log")
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, `203.0.113.%d - - [30/Nov/2026:13:%02d:%02d +0100] "GET /catalog/item/%d?ref=home HTTP/1.1" 200 %d "https://shop.example/" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36"`+"\n",
			i%250, i/60%60, i%60, i, 500+i%1000)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		out := new(counting)
		if err := open(b, "{paths: ['"+path+"']}", true).Run(b.Context(), "", out); err != nil {
			b.Fatal(err)
		}
		if out.records != lines {
			b.Fatalf("got %d records, want %d", out.records, lines)
		}
	}
	b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "lines/s")
}
